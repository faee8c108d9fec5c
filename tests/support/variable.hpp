// The environment of the calls in a test.
#pragma once

#include <cstdlib>
#include <string>

namespace moeline::testing {

/// Sets a variable until it goes out of scope, which then is unset.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace moeline::testing
