// Which profile a device is, by the names that GPUs give themselves.
#include "hardware/device_name.hpp"

#include <doctest/doctest.h>

#include "base/file.hpp"
#include "hardware/profile.hpp"

TEST_SUITE("hardware/device_name") {

using namespace moeline;

TEST_CASE("a device is the profile that a whole word of its name names, not one whose name is a part of it") {
  struct Device {
    const char* name;
    const char* profile;  // null: none
  };
  const Device devices[] = {
      {"NVIDIA H200", "h200"},
      {"NVIDIA H20", "h20"},
      {"NVIDIA GB200", "gb200-nvl72"},
      {"NVIDIA B200", "b200"},
      {"NVIDIA H800", "h800"},
      {"NVIDIA H100 80GB HBM3", "h100"},
      {"NVIDIA A100-SXM4-80GB", "a100"},
      {"NVIDIA H20-3e", nullptr},
      {"NVIDIA H100 PCIe", nullptr},
      {"NVIDIA H100 NVL", nullptr},
      {"NVIDIA H200 NVL", nullptr},
      {"NVIDIA A100-PCIE-40GB", nullptr},
      {"NVIDIA A100 80GB PCIe", nullptr},
      {"NVIDIA A100-SXM4-40GB", nullptr},
      {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", nullptr},
      {"NVIDIA A800-SXM4-80GB", nullptr},
      {"NVIDIA GH200 480GB", nullptr},
      {"NVIDIA GeForce RTX 4090", nullptr},
      {"AMD Instinct MI300X", "mi300x"},
      {"AMD Instinct MI355X", "mi355x"},
      {"AMD Instinct MI350X", nullptr},
      {"", nullptr},
  };
  for (const Device& device : devices) {
    CAPTURE(device.name);
    CHECK(profile_named_by(device.name).value_or("none") == (device.profile == nullptr ? "none" : device.profile));
  }
}

TEST_CASE("every profile is the device of the traces that we write for it") {
  for (const std::string& name : names_in("hwprofiles")) CHECK(profile_named_by(load_profile(name).name) == name);
}

TEST_CASE("a profile that is called after one of our machines is of no other machine") {
  CHECK(is_another_machine("h800", "NVIDIA H200"));
  CHECK(is_another_machine("my-h20", "NVIDIA H200"));
  CHECK_FALSE(is_another_machine("my-h200", "NVIDIA H200"));
  CHECK_FALSE(is_another_machine("h100-pcie", "NVIDIA H100 PCIe"));
  CHECK_FALSE(is_another_machine("ours", "NVIDIA H200"));
}

}  // TEST_SUITE("hardware/device_name")
