// Shows past operations, with filters: of all instances, or of one.

import { send } from "./api.js";
import { batchDetail, batchTitle, countsOf } from "./batch.js";
import { isUndone, objectTable } from "./objects.js";
import { isRunning, NAMES, problemOf, title, TONES, way, word } from "./operations.js";
import { opener, table } from "./table.js";
import { button, duration, element, moment, say, tone } from "./view.js";

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
  const state = select(Object.fromEntries(STATES.map((name) => [name, word(name)])));
  const form = element("div", { class: "filters", role: "search" },
    field("text", "Name, user or package", text),
    field("operation", "Operation", operation),
    field("state", "State", state));
  const none = element("p", { class: "card none" }, "No operation has ended.");
  const found = table("Past operations", COLUMNS, {
    key: ({ id }) => id,
    detail: (entry) => (isBatch(entry) ? batchDetail(mayChange, () => load()) : operationDetail(entry, attempt)),
  });
  const older = button("Older", () => load(entries.at(-1)?.marker));
  older.hidden = true;
  target.replaceChildren(form, found.element, none, older);
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
    const ended = entries.filter((entry) => isBatch(entry) || !isRunning(entry));
    found.show(() => ended);
    none.hidden = ended.length > 0;
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

const COLUMNS = {
  Operation: (cell, entry) => {
    opener(cell, isBatch(entry) ? batchTitle(entry) : title(entry));
    if (!cell.lastChild.matches(".message")) cell.append(element("p", { class: "message" }));
    say(cell.lastChild, entry.why);
  },
  Result: (cell, entry) => {
    if (!cell.firstChild) cell.append(element("span", { class: "badge" }), element("p", { class: `message ${isBatch(entry) ? "" : "clipped"}` }));
    say(cell.firstChild, word(entry.state));
    tone(cell.firstChild, TONES[entry.state]);
    say(cell.lastChild, isBatch(entry) ? countsOf(entry) : problemOf(entry));
  },
  Package: (cell, entry) => say(cell, isBatch(entry) ? entry.newPackage ?? "" : way(entry)),
  By: (cell, { requestedBy }) => say(cell, requestedBy ?? ""),
  Took: (cell, { started, entered }) => say(cell, duration(Math.round((new Date(entered) - new Date(started)) / 1000))),
  Started: (cell, { started }) => say(cell, moment(started)),
};

/** Its cause, its id and its steps, which are read when it is opened. */
function operationDetail({ api, id, state, ...operation }, attempt) {
  const count = element("p", { class: "quiet" });
  const steps = objectTable("Steps", false);
  const open = element("p");
  const made = element("div", {},
    element("p", { class: "problem" }, problemOf(operation)), open,
    element("p", { class: "code quiet" }, id), count, steps.element);
  if (state === "FAILED_TEMP") {
    open.append(element("a", { href: `#/instances/${operation.instanceId}` }, "Decide about it"));
  }
  attempt(async () => {
    const progress = await send("GET", `/vnflcm/${api}/vnf_lcm_op_occs/${id}/progress`);
    const { done, total } = progress;
    const howFar = isUndone(progress) ? "Every step was undone." : `${done} of ${total} steps done`;
    say(count, total ? howFar : "No object had to change.");
    steps.show(progress);
  });
  return { element: made, update: () => {} };
}
