// What several engine tests need: the model, loaded once, and the three golden prompts.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "refengine/engine.hpp"
#include "refengine/tokenizer.hpp"

namespace baton::refengine {

inline std::string model_folder() {
  return std::string(BATON_SOURCE_DIR) + "/refengine/data/dense";
}

inline const Model& test_model() {
  static const Model model = [] {
    Result<Model> loaded = Model::load(model_folder());
    if (!loaded) ADD_FAILURE() << loaded.error().text;
    return loaded ? *std::move(loaded) : Model();
  }();
  return model;
}

inline const Tokenizer& test_tokenizer() {
  static const Tokenizer tokenizer = [] {
    Result<Tokenizer> loaded = Tokenizer::load(model_folder() + "/merges.txt");
    if (!loaded) ADD_FAILURE() << loaded.error().text;
    return loaded ? *std::move(loaded) : Tokenizer();
  }();
  return tokenizer;
}

constexpr std::array<const char*, 3> kPrompts = {
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, "
    "must be in want of a wife.",
    "Emma could not help",
    "\"My dear Mr. Bennet,\" said his lady to him one day, \"have you heard that 1000 pounds a "
    "year "
    "is let at last?\"\n",
};

}  // namespace baton::refengine
