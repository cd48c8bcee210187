// Shows what runs: VDU, workload, pods or servers, as they are now.

import { age, element, say } from "./view.js";

/**
 * The tree of an instance.
 *
 * found: what the service answers, undefined while it has not; steps: those of the operation that
 * runs, to mark what it changes.
 */
export function showResources(target, found, steps = []) {
  const text = JSON.stringify([found, steps.map(({ object, state }) => [object, state])]);
  if (target.dataset.shown !== text) {
    target.dataset.shown = text;
    target.replaceChildren(...tree(found, steps));
  }
  for (const each of target.querySelectorAll("[data-started]")) say(each, age(each.dataset.started));
}

function tree(found, steps) {
  if (!found) return [element("p", { class: "quiet" }, "Reading")];
  if (found.problem) return [element("p", { class: "problem" }, found.problem)];
  if (!found.vdus.length) return [element("p", { class: "quiet" }, "Nothing runs.")];
  const place = found.namespace ? `Namespace ${found.namespace}` : `Stack ${found.stack ?? ""}`;
  return [
    element("p", { class: "quiet" }, place),
    element("ul", { class: "tree" },
      ...found.vdus.map((vdu) => vduEntry(vdu, steps, found.vimType === "kubernetes"))),
  ];
}

function vduEntry({ vduId, workloads }, steps, ofPods) {
  return element("li", {},
    element("p", { class: "name" }, vduId ? `VDU ${vduId}` : "Of no VDU"),
    element("ul", {}, ...workloads.map((workload) => workloadEntry(workload, steps, ofPods))));
}

function workloadEntry(workload, steps, ofPods) {
  const step = steps.find(({ object, state }) => object === workload.object && state !== "no action");
  const line = element("p", { class: "line" },
    element("span", { class: "object" }, workload.object),
    element("span", { class: "quiet" }, workload.images.join(", ")),
    element("span", { class: `told ${tones[workload.state] ?? ""}` },
      `${workload.ready} of ${workload.desired} ready`));
  if (step) line.append(element("span", { class: "badge busy" }, `${step.action}: ${step.state}`));
  return element("li", {}, line, element("ul", {}, ...workload.vnfcs.map((vnfc) =>
    vnfcEntry(vnfc, workload.images, ofPods))));
}

const tones = { ok: "good", changing: "busy", bad: "bad" };

/** A pod, to be opened, or a server; its image where it is not that of the workload. */
function vnfcEntry({ name, state, tone, problem, restarts, started, images }, expected, isPod) {
  const image = images.join(", ");
  const about = [
    restarts ? `restarted ${restarts} ${restarts === 1 ? "time" : "times"}` : "",
    image === expected.join(", ") ? "" : image,
  ].filter(Boolean).join(", ");
  const entry = element("li", { class: `vnfc ${tone}` },
    element("p", { class: "line" },
      isPod ? element("button", { type: "button", class: "object link", "data-pod": name }, name)
        : element("span", { class: "object" }, name),
      element("span", { class: `badge ${tone}` }, state),
      element("span", { class: "quiet" }, about),
      element("span", { class: "told quiet", ...(started ? { "data-started": started } : {}) })));
  if (problem) entry.append(element("p", { class: "problem" }, problem));
  return entry;
}

/** The VNFCs that do not work, as [name, state, problem]. */
export const broken = (found) => (found?.vdus ?? [])
  .flatMap(({ workloads }) => workloads).flatMap(({ vnfcs }) => vnfcs)
  .filter(({ tone }) => tone === "bad").map(({ name, state, problem }) => [name, state, problem]);
