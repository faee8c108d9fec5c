#include "experiments/cli/commands.hpp"
namespace moeline { void add_compare(CLI::App&, int&){} }
