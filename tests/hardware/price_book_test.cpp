// Prices that were worked out once are there for all who ask, and stay what they were.
#include "hardware/price_book.hpp"

#include <doctest/doctest.h>

#include "moe/kernels.hpp"

TEST_SUITE("hardware/price_book") {

using namespace moeline;

namespace {

std::shared_ptr<PriceBook> of_h800(const std::string& set, const std::vector<std::string>& overrides = {}) {
  return prices_of(known_profile("h800", overrides), set, "");
}

Operator gemm_of(double rows) { return kernels::gemm(Family::gemm_fp8, "W_O", rows, 7168, 16384); }

}  // namespace

TEST_CASE("who asks for the same kernel set has the same book, and another machine or set has another") {
  CHECK(of_h800("deepseek-2025-02") == of_h800("deepseek-2025-02"));
  CHECK(of_h800("deepseek-2025-02") != of_h800("open-2025-late"));
  CHECK(of_h800("deepseek-2025-02") != of_h800("deepseek-2025-02", {"nic_GBps=100"}));
  CHECK_THROWS_AS((void)of_h800("deepseek-2025-20"), UnknownName);
}

TEST_CASE("a book's price is that of the machine and kernels that it is of") {
  for (const std::vector<std::string>& overrides : {std::vector<std::string>{}, {"hbm_GBps=1000"}}) {
    const auto profile = known_profile("h800", overrides);
    const Operator cast = kernels::cast("cast", 4096, 7168);
    const Price expected = price(cast, {.sms = 132}, profile->facts, profile->kernels("deepseek-2025-02"));
    CHECK(of_h800("deepseek-2025-02", overrides)->price(cast, {.sms = 132})->solo_us == expected.solo_us);
  }
}

TEST_CASE("a book that is full forgets, and prices in hand stay") {
  PriceBook book(known_profile("h800")->facts, known_profile("h800")->kernels("deepseek-2025-02"));
  const auto first = book.price(gemm_of(64), {.sms = 132});
  CHECK(book.price(gemm_of(64), {.sms = 132}) == first);
  const double us = first->solo_us;
  int rows = 65;
  while (book.price(gemm_of(64), {.sms = 132}) == first && rows < 100'000) {
    for (int i = 0; i < 1000; ++i) (void)book.price(gemm_of(rows++), {.sms = 132});
  }
  CHECK(rows < 100'000);
  CHECK(first->solo_us == us);
  CHECK(book.price(gemm_of(64), {.sms = 132})->solo_us == us);
}

}  // TEST_SUITE("hardware/price_book")
