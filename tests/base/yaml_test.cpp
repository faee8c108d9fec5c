// YAML as it is written: every value with its kind, its line and its own copy.
#include "base/yaml.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"

TEST_SUITE("base/yaml") {

using namespace moeline;

namespace {

using Kind = YamlNode::Kind;

std::string refusal(const std::string& content) {
  try {
    (void)parse_yaml("file.yaml", content);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "was read";
}

bool says(const std::string& content, const std::string& what) {
  const std::string refused = refusal(content);
  CAPTURE(refused);
  return refused.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("values have their kind, and stand at their lines") {
  const YamlNode root = parse_yaml("f", "a: 1\nb: '2'\nc: [x, ~]\n\nd:\n  e: null\n  f: {g: no}\nh:\n");
  REQUIRE(root.is_map());
  CHECK(root.items.size() == 5);
  CHECK(root.find("a")->word == "1");
  CHECK_FALSE(root.find("a")->quoted);
  CHECK(root.find("b")->quoted);
  CHECK(root.find("c")->items[0].is_word());
  CHECK(root.find("c")->items[1].is_nothing());
  CHECK(root.find("d")->key_line == 5);
  CHECK(root.find("d")->line == 6);
  CHECK(root.find("d")->find("f")->find("g")->line == 7);
  CHECK(root.find("h")->is_nothing());
  CHECK(root.find("H") == nullptr);
}

TEST_CASE("an alias is a copy under a key of its own") {
  const YamlNode root = parse_yaml("f", "a: &x {b: [1, 2]}\nc: *x\n");
  CHECK(root.find("c")->find("b")->items[1].word == "2");
  CHECK(root.find("c")->key_line == 2);
  CHECK(root.items[0].key == "a");
  CHECK(says("a: *x\nb: &x 1\n", "file.yaml:1: not valid YAML: the referenced anchor is not defined"));
  CHECK(says("a: &x [*x]\n", "the referenced anchor is not defined"));
}

TEST_CASE("numbers are decimal, whole words, and not quoted") {
  const YamlNode list = parse_yaml("f", "[12, 010, 0x10, 1.5, '3', 4 x, -7, 1e3]");
  const auto whole = [&](std::size_t i) {
    int value = 0;
    return read_number(list.items[i], value) ? value : -1;
  };
  CHECK(whole(0) == 12);
  CHECK(whole(1) == 10);
  CHECK(whole(2) == -1);
  CHECK(whole(3) == -1);
  CHECK(whole(4) == -1);
  CHECK(whole(5) == -1);
  CHECK(whole(6) == -7);
  double number = 0;
  REQUIRE(read_number(list.items[7], number));
  CHECK(number == 1000);
}

TEST_CASE("what is damaged is refused at its line, with what was begun") {
  CHECK(says("a: 1\nb: {c: 1, d: [2\n",
             ":3: not valid YAML: did not find expected ',' or ']' while parsing a flow "
             "sequence that begins at line 2"));
  CHECK(says("a: 1\nb: 'never ends\nc: 2\n",
             "found unexpected end of stream while scanning a quoted scalar that begins "
             "at line 2"));
  CHECK(says("a: 1\nb:\n\tc: 2\n", ":3: not valid YAML"));
  CHECK(says("a: 1\nb: \"\\q\"\n", ":2: not valid YAML: found unknown escape character"));
  CHECK(says("a: 1\nb: \xff\n", ":2: not valid YAML"));
  CHECK(says("a: 1\nb: 2\na: 3\n", ":3: key 'a' is repeated"));
  CHECK(says("a: {b: 1, c: 2, 'b': 3}\n", ":1: key 'b' is repeated"));
  CHECK(says("a: 1\n---\nb: 2\n", ":2: a second document"));
  CHECK(says("a: 1\n...\nb: 2\n", "a second document"));
  CHECK(says("{a: 1} x\n", ":1: a second document, or a stray character, begins"));
  CHECK(says("a: 1\n~: 2\n", ":2: a key must be a plain word"));
  CHECK(says("a: !!map {}\n", ":1: tag 'tag:yaml.org,2002:map' is not used here"));
}

TEST_CASE("long words that many aliases repeat are refused before they are copied") {
  std::string bomb = "a: &a " + std::string(100'000, 'x') + "\nb: [*a";
  for (int i = 0; i < 20'000; ++i) bomb += ", *a";
  CHECK(says(bomb + "]\n", "holds more than 1000000 values"));
}

}  // TEST_SUITE("base/yaml")
