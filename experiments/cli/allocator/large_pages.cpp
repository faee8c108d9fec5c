// Large arrays, as the engine has of a whole pipeline, lie on pages of 2 MiB where the system offers them: of pages of
// 4 KiB each first touch is a fault, which is up to half of such a run's time. For a few per cent more memory.
#include <mimalloc.h>

namespace {

[[maybe_unused]] const bool kLargePages = (mi_option_enable(mi_option_large_os_pages), true);

}  // namespace
