// Shows past operations, with filters: of all instances, or of one.

import { send } from "./api.js";
import { batchCard, updateBatch } from "./batch.js";
import { isUnsettled, NAMES, title, TONES, way } from "./operations.js";
import { showSteps } from "./steps.js";
import { button, day, duration, element, foldable, head, keep, say } from "./view.js";

const PAGE = 50;
const WAIT_MS = 300;
const AGAIN_MS = 2000;
const STATES = ["COMPLETED", "FAILED_TEMP", "FAILED", "ROLLED_BACK"];

/**
 * Makes a list of past operations in `target`; returns a function that reads it again.
 *
 * instance: the id of the one whose operations they are; '' for all; attempt(action) runs a request
 * and shows what refuses it; mayChange(): whether the user may.
 */
export function history(target, instance, attempt, mayChange = () => false) {
  const prefix = `history-${instance || "all"}`;
  const field = (name, label, made) => {
    made.id = `${prefix}-${name}`;
    return element("div", {}, element("label", { for: made.id }, label), made);
  };
  const select = (names) => element("select", {}, element("option", { value: "" }, "all"),
    ...Object.entries(names).map(([value, text]) => element("option", { value }, text)));
  const words = Object.fromEntries(Object.entries(NAMES).map(([name, text]) =>
    [name, text.replace(" of", "")]));
  const text = element("input", { type: "search", autocomplete: "off" });
  const operation = select(words);
  const state = select(Object.fromEntries(STATES.map((name) => [name, name])));
  const form = element("div", { class: "filters", role: "search" },
    field("text", "Name, user or package", text),
    field("operation", "Operation", operation),
    field("state", "State", state));
  const found = element("ul", { class: "cards" });
  const older = button("Older", () => load(entries.at(-1)?.marker));
  older.hidden = true;
  target.replaceChildren(form, found, older);
  let entries = [];
  let timer = 0;
  let again = 0;

  const filters = () => String(new URLSearchParams({
    instance, text: text.value.trim(), operation: operation.value, state: state.value,
  }));

  async function load(before = "") {
    const query = filters();
    await attempt(async () => {
      const answer = await send("GET", `/view/operations?${query}&before=${encodeURIComponent(before)}`);
      if (query !== filters()) return; // it answers another question
      entries = before ? [...entries, ...answer] : answer;
      older.hidden = answer.length < PAGE;
      show();
      clearTimeout(again);
      if (entries.some(isBatchAtWork)) {
        again = setTimeout(() => { if (target.checkVisibility()) load(); }, AGAIN_MS);
      }
    });
  }

  function show() {
    keep(found, entries.filter((entry) => isBatch(entry) || !isUnsettled(entry)), {
      key: ({ id }) => id,
      make: (entry) => (isBatch(entry) ? batchCard() : card(entry, attempt)),
      update: (made, entry) => (isBatch(entry)
        ? updateBatch(made, entry, mayChange(), load) : updateCard(made, entry)),
      none: "No operation has ended.",
    });
  }

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(load, WAIT_MS);
  });
  show();
  return () => load();
}

const isBatch = ({ kind }) => kind === "batch";

const isBatchAtWork = (entry) => isBatch(entry) && entry.state === "PROCESSING";

function card(operation, attempt) {
  const made = foldable();
  made.querySelector(".body").append(
    element("p", { class: "problem" }),
    element("p", { class: "way" }),
    element("p", { class: "count quiet" }),
    element("p", { class: "code quiet" }),
    element("ol", { class: "steps" }));
  made.querySelector("details").addEventListener("toggle", (event) => {
    if (event.target.open) attempt(() => showProgress(made, operation));
  });
  return made;
}

async function showProgress(made, { api, id }) {
  const path = `/vnflcm/${api}/vnf_lcm_op_occs/${id}/progress`;
  const { steps, remarks, done, total } = await send("GET", path);
  say(made.querySelector(".count"),
    total ? `${done} of ${total} steps done` : "No object had to change.");
  showSteps(made.querySelector(".steps"), steps, remarks);
}

function updateCard(made, operation) {
  const { id, started, entered, state, requestedBy, problem } = operation;
  const took = duration((new Date(entered) - new Date(started)) / 1000);
  const by = requestedBy ? `, by ${requestedBy}` : "";
  head(made, title(operation), `${day(started)}, took ${took}${by}`, state, TONES[state]);
  say(made.querySelector(".way"), way(operation));
  say(made.querySelector(".problem"), problem);
  say(made.querySelector(".code"), id);
}
