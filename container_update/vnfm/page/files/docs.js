// Renders the OpenAPI document with Swagger UI. A tab that has a token on the page has it here too.

import { token } from "./api.js";

const SECRET = ["X-Auth-Token", "Authorization"];

/** Says as OpenAPI 3.0 does what 3.1 says in another way: this Swagger UI reads no 3.1. */
function asIn30(key, value) {
  if (key === "type" && Array.isArray(value)) return value.find((type) => type !== "null");
  if (!Array.isArray(value?.anyOf)) return value;
  const { anyOf, ...rest } = value;
  const choices = anyOf.filter((choice) => choice.type !== "null");
  return choices.length === 1 ? { ...choices[0], ...rest } : { ...rest, anyOf: choices };
}

/** Shows commands for curl without the token. */
const withoutToken = {
  wrapComponents: {
    curl: (Curl, { React }) => ({ request, ...others }) => {
      const hide = (headers) => headers.map((value, name) => SECRET.includes(name) ? "TOKEN" : value);
      return React.createElement(Curl, { ...others, request: request.update("headers", hide) });
    },
  },
};

const answer = await fetch("/openapi.json", { credentials: "omit" });
const spec = { ...JSON.parse(await answer.text(), asIn30), openapi: "3.0.3" };
const shown = window.SwaggerUIBundle({
  spec,
  dom_id: "#docs",
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  plugins: [withoutToken],
  onComplete: () => {
    if (token.get()) shown.preauthorizeApiKey("token", token.get());
  },
});
