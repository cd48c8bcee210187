// Shows what many instances are updated by: the selection with its plans, and batches in the history.

import { send } from "./api.js";
import * as commands from "./commands.js";
import { ask } from "./dialog.js";
import { TONES, word } from "./operations.js";
import { planner } from "./plan.js";
import { table } from "./table.js";
import { button, element, fill, say, tone } from "./view.js";

const FAILED = new Set(["FAILED_TEMP", "FAILED", "ROLLED_BACK", "REFUSED"]);
const REQUESTS = {
  cancel: ["Stop", "No further instance begins; running operations go on."],
  resume: ["Resume", "Failed instances are tried again, then the batch continues."],
};
const title = document.getElementById("batch-title");
const target = document.getElementById("batch").lastElementChild;
/** What is made for the selection that is shown. */
let made = null;

/** The instances that are selected, by their ids. */
export const selected = new Map();

/** Shows the plans of what is selected. */
export function showBatch({ packages, mayChange }, attempt) {
  const chosen = [...selected.values()];
  const key = [...selected.keys()].join();
  const isNew = made?.key !== key;
  say(title, chosen.length > 1 ? `Update ${chosen.length} instances`
    : chosen[0] ? `Update ${chosen[0].name}` : "No instance is selected.");
  if (isNew) {
    target.replaceChildren();
    made = { key, planning: chosen.length ? planner(target, chosen, attempt, begun) : null };
  }
  made.planning?.update(chosen[0], packages, mayChange);
  if (isNew) made.planning?.choose("MODIFY_INFO");
}

function begun() {
  selected.clear();
  location.hash = "#/history";
}

export const batchTitle = ({ members, newPackage }) =>
  `Batch of ${members.length} instances${newPackage ? ` to ${newPackage}` : ""}`;

/** How many of its instances are done, and have failed. */
export function countsOf({ members }) {
  const count = (is) => members.filter(({ state }) => is(state)).length;
  return `${count(isDone)} done, ${count((state) => FAILED.has(state))} failed`;
}

const isDone = (state) => state === "COMPLETED";

/** What a batch in the history opens to: its requests and its instances; reload(): it was requested. */
export function batchDetail(mayChange, reload) {
  const buttons = element("div", { class: "buttons" });
  const code = element("p", { class: "code quiet" });
  const members = table("Instances of the batch", MEMBER, { key: ({ vnfInstanceId }) => vnfInstanceId });
  const update = (batch) => {
    const isAtWork = batch.state === "PROCESSING";
    const isLeft = isAtWork || !batch.members.every(({ state }) => isDone(state));
    const requests = mayChange() && isLeft ? [isAtWork ? "cancel" : "resume"] : [];
    fill(buttons, requests, () => requests.map((each) =>
      button(REQUESTS[each][0], () => askAbout(batch, each, reload))));
    say(code, batch.id);
    members.show(() => batch.members);
  };
  return { element: element("div", {}, buttons, code, members.element), update };
}

const MEMBER = {
  Instance: (cell, { vnfInstanceId, vnfInstanceName }) => fill(cell, vnfInstanceName, () =>
    [element("a", { href: `#/instances/${vnfInstanceId}` }, vnfInstanceName)]),
  State: (cell, { state, problem }) => {
    fill(cell, [state, problem], () => [
      element("span", { class: "badge" }, word(state)), element("p", { class: "message" }, problem ?? "")]);
    tone(cell.firstChild, FAILED.has(state) ? "bad" : TONES[state]);
  },
  Wave: (cell, { wave }) => say(cell, wave ? String(wave) : ""),
};

function askAbout(batch, request, reload) {
  const [label, does] = REQUESTS[request];
  ask({
    title: `${label} the batch?`,
    text: `${does} Batch of ${batch.members.length} instances (${batch.id}).`,
    command: () => commands.aboutBatch(batch, request),
    confirm: label,
    act: () => send("POST", `/vnflcm/${batch.api}/batches/${batch.id}/${request}`),
    then: () => reload(),
  });
}
