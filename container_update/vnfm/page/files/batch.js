// Shows what many instances are updated by: the selection with its plans, and batches in the history.

import { send } from "./api.js";
import * as commands from "./commands.js";
import { ask } from "./dialog.js";
import { TONES } from "./operations.js";
import { planner } from "./plan.js";
import { button, day, element, foldable, head, keep, say, tone } from "./view.js";

const FAILED = new Set(["FAILED_TEMP", "FAILED", "ROLLED_BACK", "REFUSED"]);
const REQUESTS = {
  cancel: ["Stop", "Nothing more of it begins; what has begun goes on."],
  resume: ["Resume", "What failed is tried again, then the batch goes on."],
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

/** A batch among past operations. */
export function batchCard() {
  const card = foldable();
  card.querySelector(".body").append(
    element("div", { class: "buttons" }),
    element("p", { class: "code quiet" }),
    element("ol", { class: "steps" }));
  return card;
}

/** reload(): something was requested. */
export function updateBatch(card, batch, mayChange, reload) {
  const { id, state, started, requestedBy, newPackage, members } = batch;
  const count = (is) => members.filter((member) => is(member.state)).length;
  const done = count((each) => each === "COMPLETED");
  const failed = count((each) => FAILED.has(each));
  const by = requestedBy ? `, by ${requestedBy}` : "";
  head(card, `Batch of ${members.length} instances${newPackage ? ` to ${newPackage}` : ""}`,
    `${day(started)}, ${done} done, ${failed} failed${by}`, state, TONES[state]);
  const isAtWork = state === "PROCESSING";
  const request = isAtWork ? "cancel" : "resume";
  keep(card.querySelector(".buttons"), mayChange && (isAtWork || done < members.length) ? [request] : [], {
    key: (each) => each,
    make: (each) => button(REQUESTS[each][0], () => askAbout(batch, each, reload)),
    update: () => {},
  });
  say(card.querySelector(".code"), id);
  keep(card.querySelector(".steps"), members, {
    key: ({ vnfInstanceId }) => vnfInstanceId,
    make: memberLine,
    update: updateMember,
  });
}

function memberLine({ vnfInstanceId, vnfInstanceName }) {
  return element("li", {},
    element("span", { class: "mark", "aria-hidden": "true" }, "\u2022"),
    element("div", {},
      element("div", { class: "line" },
        element("a", { class: "object", href: `#/instances/${vnfInstanceId}` }, vnfInstanceName),
        element("span", { class: "quiet" }),
        element("span", { class: "told" })),
      element("p", { class: "message" })));
}

function updateMember(line, { state, wave, problem }) {
  const told = line.querySelector(".told");
  say(line.querySelector(".quiet"), wave ? `wave ${wave}` : "");
  say(told, state);
  tone(told, FAILED.has(state) ? "bad" : TONES[state]);
  say(line.querySelector(".message"), problem);
}

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
