import js from "@eslint/js";
import globals from "globals";

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
      "no-shadow": ["error", { allow: ["_"] }],
    },
  },
  {
    files: ["tests/js/*.mjs"],
    languageOptions: { globals: globals.node },
  },
];
