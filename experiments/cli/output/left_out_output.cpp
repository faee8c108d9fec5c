#include "experiments/cli/output/left_out_output.hpp"

namespace moeline {

Fields<LeftOutError> left_out_fields() {
  const As is_signed = {.decimals = 4, .least = -1};
  return Fields<LeftOutError>()
      .add("cases", "kernels or steps of machines that were left out", &LeftOutError::cases)
      .add("median_abs_error", "median of |predicted / by its own kernels - 1|", &LeftOutError::median_abs_error,
           {.decimals = 4})
      .add("p95_abs_error", "its 95 % quantile", &LeftOutError::p95_abs_error, {.decimals = 4})
      .add("mean_error", "mean, signed", &LeftOutError::mean_error, is_signed)
      .add("worst_error", "largest by its amount, signed", &LeftOutError::worst_error, is_signed);
}

Fields<CarriedOver> carried_over_fields() {
  return Fields<CarriedOver>()
      .add("share", "of the solo time that another machine's kernels price", &CarriedOver::share)
      .add("kin", "what the two machines share", [](auto& c) { return name_of(c.kin); },
           {.words = words_to(Kin::other_vendor)})
      .object(
          "left_out", "of such steps of measured machines that were derived so; absent where none was tried",
          [](auto& c) { return c.error; }, left_out_fields());
}

}  // namespace moeline
