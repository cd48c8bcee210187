// A form for the body of a request: a field for each value that has a name here; the JSON is folded.

import { element } from "./view.js";

const LABELS = {
  namespace: "Namespace",
  flavourId: "Deployment flavour",
  upgrade_type: "Kind of change",
  "lcm-kubernetes-def-files": "Manifests",
  configmap_secret_paths: "ConfigMaps and Secrets",
};
const CHOICES = { upgrade_type: ["RollingUpdate", "Blue-Green"] };

/**
 * Makes the form of a draft: {element, value()}.
 *
 * value() raises SyntaxError where the JSON is none. changed(): the user changed something.
 */
export function requestForm(prefix, draft, changed = () => {}) {
  const json = element("textarea", { rows: "12", spellcheck: "false", id: `${prefix}-json` });
  const fields = element("div", { class: "fields" });
  const write = (body) => { json.value = JSON.stringify(body, null, 2); };
  const value = () => JSON.parse(json.value);

  function show() {
    const found = [...leaves(value())].filter(([keys]) => LABELS[keys.at(-1)]);
    fields.replaceChildren(...found.map(([keys, current]) =>
      field(`${prefix}-${keys.at(-1)}`, keys, current)));
  }

  function set(keys, current) {
    const body = value();
    keys.slice(0, -1).reduce((target, key) => target[key], body)[keys.at(-1)] = current;
    write(body);
  }

  function field(id, keys, current) {
    const name = keys.at(-1);
    if (Array.isArray(current)) {
      const boxes = current.map((text) => element("input", { type: "checkbox", value: text, checked: "" }));
      const count = element("summary", {}, `${LABELS[name]}: all ${boxes.length} files`);
      const group = element("details", {}, count, element("fieldset", { "aria-label": LABELS[name] },
        ...boxes.map((box) => element("label", {}, box, ` ${box.value}`))));
      group.addEventListener("input", () => {
        const kept = boxes.filter(({ checked }) => checked).map((box) => box.value);
        count.textContent = `${LABELS[name]}: ${kept.length} of ${boxes.length} files`;
        set(keys, kept);
      });
      return group;
    }
    const made = CHOICES[name]
      ? element("select", { id }, ...CHOICES[name].map((text) => element("option", {}, text)))
      : element("input", { id, autocomplete: "off" });
    made.value = current;
    made.addEventListener("input", () => set(keys, made.value));
    return element("div", {}, element("label", { for: id }, LABELS[name]), made);
  }

  json.addEventListener("input", () => {
    try {
      show();
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error; // value() tells it
    }
  });
  const folded = element("details", {}, element("summary", {}, "The request as JSON"),
    element("label", { for: json.id, class: "unseen" }, "Request"), json);
  const whole = element("div", { class: "fields" }, fields, folded);
  whole.addEventListener("input", changed);
  write(draft);
  show();
  return { element: whole, value };
}

/** The values of a body that are texts or lists of texts, as [keys, value]. */
function* leaves(body, keys = []) {
  if (body === null || typeof body !== "object") return;
  for (const [key, value] of Object.entries(body)) {
    const isTexts = Array.isArray(value) && value.every((each) => typeof each === "string");
    if (typeof value === "string" || isTexts) yield [[...keys, key], value];
    else yield* leaves(value, [...keys, key]);
  }
}
