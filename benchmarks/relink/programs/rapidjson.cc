// Parses and walks a generated document, over and over.
#include <cstdio>
#include <string>

#include "rapidjson/document.h"

enum { ROUNDS = 100 };

static double walk(const rapidjson::Value &value) {
    double sum = 0.0;
    if (value.IsArray()) {
        for (const auto &item : value.GetArray()) sum += walk(item);
    } else if (value.IsObject()) {
        for (const auto &member : value.GetObject()) {
            sum += member.name.GetStringLength() + walk(member.value);
        }
    } else if (value.IsNumber()) {
        sum = value.GetDouble();
    }
    return sum;
}

int main() {
    std::string text = "[";
    for (int i = 0; i < 2000; i++) {
        if (i) text += ",";
        text += "{\"name\":\"item " + std::to_string(i) + "\",\"values\":[" + std::to_string(i) + "," +
                std::to_string(0.25 * i) + ",true,null]}";
    }
    text += "]";
    double sum = 0.0;
    for (int round = 0; round < ROUNDS; round++) {
        rapidjson::Document document;
        document.Parse(text.c_str());
        sum += walk(document);
    }
    std::printf("%g\n", sum);
}
