#include "timeline/json_text.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "base/text.hpp"

namespace moeline {

std::string json_text(std::string_view text) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  const std::string valid = as_utf8(text);
  writer.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace moeline
