import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: [".venv/", "assets/", "build/", "test-results/"] },
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
    files: ["tests/js/*.mjs"],
    languageOptions: { globals: globals.node },
  },
];
