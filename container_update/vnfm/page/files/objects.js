// Shows the objects of an instance in one table: the steps that change them, why, and what runs.

import { opener, table } from "./table.js";
import { age, duration, element, fill, say, tone } from "./view.js";

const MARKS = {
  failed: ["\u2717", "bad"],
  "could not be undone": ["\u2717", "bad"],
  running: ["\u25d4", "busy"],
  planned: ["\u25cb", ""],
  undone: ["\u21b6", ""],
  done: ["\u2713", "good"],
};
const TROUBLE = ["bad", "busy"];
const RUNS = {
  ok: ["ready", "good"], changing: ["changing", "busy"], bad: ["not ready", "bad"], missing: ["missing", "bad"],
};

/** The table: {element, show(progress, found)}; isLive: with what runs, beside the steps. */
export function objectTable(label, isLive) {
  const live = {
    Ready: (cell, { workload }) => say(cell, workload ? readyText(workload) : ""),
    Restarts: (cell, { pods }) => say(cell, pods.length ? sum(pods.map(({ restarts }) => restarts)) : ""),
    Age: (cell, { pods }) => say(cell, pods.length ? age(newest(pods)) : ""),
  };
  const made = table(label, {
    Object: name,
    [isLive ? "State" : "Action"]: state,
    "Image or change": (cell, row) => say(cell, change(row)),
    ...(isLive ? live : {}),
  }, { key: ({ key }) => key, tone: ({ pod }) => (pod ? "pod" : ""), detail: why });
  made.element.classList.add("objects");
  const show = (progress, found) => made.show((isOpen) => joined(progress, found).flatMap((row) =>
    [{ ...row, namespace: found?.namespace }, ...(isLive ? row.pods : []).filter((pod) => isOpen(row.key) || TROUBLE.includes(pod.tone))
      .map((pod) => podRow(pod, row, found))]));
  return { element: made.element, show };
}

/** Steps with the workload that each changes, then the other workloads: trouble first. */
function joined({ steps = [], remarks = [] } = {}, found) {
  const workloads = new Map((found?.vdus ?? []).flatMap((vdu) =>
    vdu.workloads.map((each) => [each.object, { ...each, vduId: vdu.vduId }])));
  const row = (key, step, workload) =>
    ({ key, step, workload, object: (step ?? workload).object, pods: workload?.vnfcs ?? [] });
  const changed = steps.map((step) => {
    const workload = workloads.get(step.object);
    workloads.delete(step.object);
    return row(`${step.action} ${step.object}`, step, workload);
  });
  const others = [...workloads.values()].map((workload) => row(workload.object, undefined, workload));
  const unchanged = remarks.map(({ object, kind, text }) =>
    row(`${kind} ${object}`, { object, action: kind, message: text }));
  return [...changed, ...others].sort((one, other) => rank(one) - rank(other)).concat(unchanged);
}

/** The place of a row: what fails or has failed, then what changes, what will, what has, and what does not. */
function rank({ step, workload }) {
  const states = [MARKS[step?.state]?.[1], RUNS[workload?.state]?.[1]];
  const trouble = step?.problem ? 0 : TROUBLE.findIndex((each) => states.includes(each));
  if (trouble >= 0) return trouble;
  return step ? TROUBLE.length + Object.keys(MARKS).indexOf(step.state) : 10;
}

/** The namespace is said once, above the table, where it is the instance's own. */
function name(cell, { pod, object, isPod, namespace }) {
  if (!pod) opener(cell, object.replace(` ${namespace}/`, " "));
  else fill(cell, pod.name, () => [isPod
    ? element("button", { type: "button", class: "link", "data-pod": pod.name }, pod.name) : pod.name]);
}

function state(cell, { step, pod, workload }) {
  if (!cell.firstChild) cell.append(element("span", { class: "badge" }), element("p", { class: "message" }));
  const [badge, message] = cell.children;
  if (pod) {
    say(badge, pod.state);
    tone(badge, pod.tone);
    say(message, pod.tone === "bad" ? pod.problem : "");
    return;
  }
  const took = step?.seconds ? ` in ${duration(step.seconds)}` : "";
  const became = step?.problem && step.state === "undone" ? "failed, undone" : step?.state;
  const what = [step?.action, became].filter(Boolean).join(": ");
  say(badge, step ? `${MARKS[step.state]?.[0] ?? ""} ${what}${took}`.trim()
    : RUNS[workload.state]?.[0] ?? "");
  const isBad = workload?.state === "bad" || step?.problem;
  tone(badge, isBad ? "bad" : (step ? MARKS[step.state]?.[1] : RUNS[workload.state]?.[1]) ?? "");
  say(message, step?.state === "undone" ? "" : step?.message ?? "");
}

/** Images from old to new while a step changes them, else what runs; of other objects why they change. */
function change({ step, workload, images, pod, expected }) {
  if (pod) return images === expected ? "" : images;
  const lines = (sign) => (step?.diff ?? []).filter((line) => line.startsWith(`${sign}image: `))
    .map((line) => line.slice(8));
  const [before, after] = [lines("-"), lines("+")];
  const isBack = step?.state === "undone" && workload;
  if (after.length && !isBack) {
    return [...new Set(after.map((image, at) => [before[at], image].filter(Boolean).join(" \u2192 ")))].join(", ");
  }
  return workload ? workload.images.join(", ") : step?.reasons?.[0] ?? "";
}

const readyText = ({ ready, desired, readyOld }) =>
  `${ready} of ${desired}${readyOld ? `, ${readyOld} old` : ""}`;
const sum = (numbers) => String(numbers.reduce((all, each) => all + each, 0));
const newest = (pods) => pods.map(({ started }) => started).sort().at(-1);

/** A pod, to be opened, or a server, below its workload. */
function podRow(pod, { key, workload }, found) {
  return {
    key: `${key} ${pod.name}`,
    pod,
    pods: [pod],
    tone: pod.tone,
    isPod: found.vimType === "kubernetes",
    images: pod.images.join(", "),
    expected: workload.images.join(", "),
  };
}

/** What a row opens to: its VDU, the reasons of its step, the difference. */
function why({ step, workload }) {
  const { reasons = [], diff = [], problem, state: became } = step ?? {};
  const failed = problem && became === "undone" ? [`it failed: ${problem}`] : [];
  const vdu = workload?.vduId ? [`part of ${workload.vduId}`] : [];
  const made = element("div", {}, element("ul", { class: "reasons" },
    ...[...failed, ...reasons, ...vdu].map((reason) => element("li", {}, reason))));
  if (diff.length) made.append(difference(diff));
  return { element: made, update: () => {} };
}

function difference(lines) {
  const tones = { "+": "good", "-": "bad" };
  return element("pre", { class: "diff", tabindex: "0", role: "group", "aria-label": "Difference" },
    ...lines.map((line) => element("span", { class: tones[line[0]] ?? "quiet" }, `${line}\n`)));
}

/** Whether all that the steps of an operation changed is as before. */
export const isUndone = ({ steps = [] } = {}) => steps.length > 0
  && steps.every(({ state }) => state === "undone" || state === "planned");

/** Whether something does not work. */
export const isBroken = (found) => (found?.vdus ?? [])
  .some(({ workloads }) => workloads.some((workload) => workload.state === "bad"));
