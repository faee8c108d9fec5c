// Text of others' files is printed as valid UTF-8, on one line, cut between characters.
#include "base/text.hpp"

#include <doctest/doctest.h>

TEST_SUITE("base/text") {

using namespace moeline;

namespace {

const std::string kReplaced = "\xEF\xBF\xBD";

}  // namespace

TEST_CASE("valid UTF-8 stays as it is: one to four bytes, the first and last characters of each length") {
  for (const char* text : {"", "gemm", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "核函数 ε 🙂"}) {
    CHECK(as_utf8(text) == text);
  }
}

TEST_CASE("every byte that belongs to no character is replaced, and what follows it is kept") {
  CHECK(as_utf8("a\xFFz") == "a" + kReplaced + "z");
  CHECK(as_utf8("\x80") == kReplaced);                  // a continuation alone
  CHECK(as_utf8("\xC0\xAF") == kReplaced + kReplaced);  // overlong '/'
  CHECK(as_utf8("\xE0\x9F\xBF").size() == 9);           // overlong
  CHECK(as_utf8("\xED\xA0\x80").size() == 9);           // a surrogate
  CHECK(as_utf8("\xF4\x90\x80\x80").size() == 12);      // beyond U+10FFFF
  CHECK(as_utf8("\xE6\xA0"
                "b") == kReplaced + kReplaced + "b");
  CHECK(as_utf8("\xE6\xA0") == kReplaced + kReplaced);  // the text ends inside a character
}

TEST_CASE("one line has no control characters, those of two bytes included") {
  CHECK(one_line("evil\n\x1b[31mred\ttab\x7f") == "evil??[31mred?tab?");
  CHECK(one_line("a\xC2\x9B"
                 "31m") == "a?31m");  // CSI in one character
  CHECK(one_line(std::string_view("a\0b", 3)) == "a?b");
}

TEST_CASE("a longer text is cut between characters and says so") {
  CHECK(one_line("123456", 6) == "123456");
  CHECK(one_line("1234567", 6) == "123...");
  CHECK(one_line("核核核核核核", 6) == "核核核核核核");
  CHECK(one_line("核核核核核核核", 6) == "核核核...");
  CHECK(one_line("1234", 3) == "...");
  CHECK(one_line("\xFF\xFF\xFF\xFF\xFF", 4) == kReplaced + "...");
  CHECK(one_line(std::string(100, 'x')).size() == 80);
}

}  // TEST_SUITE("base/text")
