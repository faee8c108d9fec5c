// Everything that reads what a user wrote, fed with bytes: the reader and all checks behind it, but no simulation.
//
// Each is in feed_NAME.cpp, is a program NAME_fuzz, and has inputs in corpus/NAME. True where the bytes were taken;
// a SpecError is a refusal, and everything else that is thrown is a find and passes.
#pragma once

#include <string_view>

namespace moeline::fuzz {

bool feed_calibration(std::string_view bytes);   ///< tables of `calibrate`, several at once
bool feed_facts(std::string_view bytes);         ///< of `validate`: facts, and studies of served models
bool feed_kernel_map(std::string_view bytes);    ///< of traces' kernels
bool feed_loads(std::string_view bytes);         ///< expert loads and router maps of `balance`
bool feed_model(std::string_view bytes);         ///< config.json, hf_quant_config.json, our own YAML
bool feed_nsight(std::string_view bytes);        ///< exports of Nsight Systems, or SQL that makes one
bool feed_op(std::string_view bytes);            ///< OPs of `price`, one a line
bool feed_overlap_plan(std::string_view bytes);  ///< of every schedule that takes one
bool feed_plan(std::string_view bytes);          ///< of serving and of training
bool feed_profile(std::string_view bytes);       ///< of a machine
bool feed_row_kinds(std::string_view bytes);     ///< what the rows of others' tables are, and such tables
bool feed_scenario(std::string_view bytes);      ///< and all that it names; requests that are served, too
bool feed_study(std::string_view bytes);         ///< of `sweep`
bool feed_trace(std::string_view bytes);         ///< of a profiler: read, analysed and replayed

}  // namespace moeline::fuzz
