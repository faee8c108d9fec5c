// Whether the tests run under the address sanitizer, where everything takes ten to forty times as long.
#pragma once

namespace moeline::testing {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MOELINE_SANITIZED  // clang's word; GCC's is __SANITIZE_ADDRESS__
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(MOELINE_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace moeline::testing
