// What --html means, in the help of every command that writes the page of a timeline.
#pragma once

namespace moeline {

inline constexpr const char* kTimelineHelp =
    R"(--html FILE: one page that needs no network, and says what it leaves out to stay below 2 MB. It zooms and pans over the
streams of the ranks that it shows, above what is taken of their SMs, memory and links (of a trace: whether kernels compute
or communicate). A bar that is clicked says what released it, how long it then waited and for what, what its end waited for,
what ran beside it, and where its price comes from. What the end waited for is the path of moeline explain. A whole step of
training is slots of all ranks, with the kernels of some slots of one rank.)";

}  // namespace moeline
