// Asks before anything is changed: what it is about, what is needed for it, and the same command.

import { Refused } from "./api.js";
import { element, say } from "./view.js";

const at = (name) => document.getElementById(`dialog-${name}`);
const dialog = document.getElementById("dialog");
let current = null;

/**
 * Shows the dialog.
 *
 * fields: [{name, label, value, options: [[value, text], ...] | undefined, kind: "number"}]
 * form: one of form.js, before the fields; typed: what has to be typed first, for what is dangerous.
 * command(values): the command that does the same; act(values): does it, and may raise Refused;
 * then(answer) shows what became of it.
 */
export function ask({ title, text, fields = [], form, command, confirm, typed, act, then = () => {} }) {
  if (typed) fields = [...fields, { name: "typed", label: `Type ${typed} to confirm` }];
  current = { fields, command, typed, act, then };
  say(at("title"), title);
  say(at("text"), text);
  say(at("problem"), "");
  say(at("confirm"), confirm);
  at("fields").replaceChildren(...(form ? [form.element] : []), ...fields.flatMap(entry));
  at("confirm").className = typed ? "danger" : "main";
  show();
  dialog.showModal();
  (at("fields").querySelector("input, select, textarea") ?? at("cancel")).focus();
}

/** The field for the reason, which the history shows, and the path of a request with it. */
export const WHY = { name: "why", label: "Why (optional)" };
export const because = (path, { why }) => (why ? `${path}?why=${encodeURIComponent(why)}` : path);

function entry({ name, label, value = "", options, kind, min = "1" }) {
  const id = `field-${name}`;
  const made = options
    ? element("select", {}, ...options.map(([key, text]) => element("option", { value: key }, text)))
    : element("input",
      { type: kind ?? "text", autocomplete: "off", maxlength: 255, ...(kind === "number" ? { min } : {}) });
  made.id = id;
  if (!options || value) made.value = value;
  return [element("label", { for: id }, label), made];
}

/** The fields' values. */
function values() {
  return Object.fromEntries(current.fields.map(({ name, kind }) => {
    const text = document.getElementById(`field-${name}`).value;
    return [name, kind === "number" ? Number(text) : text];
  }));
}

function show() {
  const { typed } = values();
  at("confirm").disabled = typed !== current.typed;
  try {
    say(at("command"), current.command(values()));
    say(at("problem"), "");
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    say(at("problem"), `The request is not JSON: ${error.message}`);
  }
}

async function confirmed() {
  at("confirm").disabled = true;
  try {
    const answer = await current.act(values());
    dialog.close();
    current.then(answer);
  } catch (error) {
    if (!(error instanceof Refused || error instanceof SyntaxError)) throw error;
    say(at("problem"), error.message);
    at("confirm").disabled = false;
  }
}

at("fields").addEventListener("input", show);
at("fields").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("input") && !at("confirm").disabled) confirmed();
});
at("cancel").addEventListener("click", () => dialog.close());
at("confirm").addEventListener("click", confirmed);
at("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(at("command").textContent);
  say(at("copy"), "Copied");
});
dialog.addEventListener("close", () => say(at("copy"), "Copy"));
