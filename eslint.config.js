import js from "@eslint/js";
import globals from "globals";

// Names that say nothing about their values; the same as VAGUE_NAMES and VAGUE_FUNCTIONS in tests/test_glossary.py.
const VAGUE = ["asked", "found", "it", "kept", "known", "own", "said", "told"];
const turned = (name) => [`_${name}`, name.toUpperCase()];
const VAGUE_FUNCTIONS = ["_each", "_of", "_or", "_there"];

export default [
  { ignores: [".venv/", "assets/", "benchmarks/cache/", "build/", "test-results/"] },
  js.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    rules: {
      eqeqeq: "error",
      "no-var": "error",
      "prefer-const": "error",
    },
  },
  {
    files: ["mha_viz/**/*.js"],
    rules: {
      "max-lines-per-function": ["error", { max: 40 }],
      "no-shadow": ["error", { allow: ["_"] }],
    },
  },
  {
    files: ["mha_viz/**/*.js", "benchmarks/*.js"],
    rules: { "id-denylist": ["error", ...VAGUE, ...VAGUE.flatMap(turned), ...VAGUE_FUNCTIONS] },
  },
  {
    files: ["tests/js/*.mjs"],
    languageOptions: { globals: globals.node },
  },
];
