// CAPTURE of a name from a structured binding, which clang captures in no lambda before its version 16.
#pragma once

#include <doctest/doctest.h>

#define MOELINE_CAPTURE_BINDING(name) \
  const auto& captured_##name = name; \
  CAPTURE(captured_##name)
