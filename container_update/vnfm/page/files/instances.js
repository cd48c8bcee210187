// Shows VNF instances: what runs, the plan of a request, their history, and the requests about them.

import { send } from "./api.js";
import * as commands from "./commands.js";
import { ask } from "./dialog.js";
import { history } from "./history.js";
import { planner } from "./plan.js";
import { showResources } from "./resources.js";
import { button, element, facts, foldable, head, keep, tabs } from "./view.js";

const path = ({ api, id }) => `/vnflcm/${api}/vnf_instances/${id}`;

/**
 * The list of instances.
 *
 * shown: {progress, resources, running, packages, mayChange}; does: {select(id), attempt(action)}.
 */
export function showInstances(target, instances, shown, does) {
  keep(target, instances, {
    key: ({ id }) => id,
    make: (instance) => instanceCard(instance, does),
    update: (card, instance) => updateInstance(card, instance, shown),
    none: "There is no VNF instance.",
  });
}

/** Each card's functions: reload() its history, open(operation) its plan. */
const parts = new WeakMap();

function instanceCard(instance, { select, attempt }) {
  const card = foldable();
  const details = card.querySelector("details");
  const plan = element("div");
  const past = element("div");
  const reload = history(past, instance.id, attempt);
  const planning = planner(plan, instance, attempt);
  const tabbed = tabs(`instance-${instance.id}`, {
    Resources: element("div", { class: "resources" }),
    Plan: plan,
    History: past,
    Details: element("div", { class: "facts" }),
  }, (name) => { if (name === "History") reload(); });
  card.querySelector(".body").append(element("div", { class: "buttons" }), tabbed.element);
  details.addEventListener("toggle", () => {
    if (details.open) {
      for (const other of card.parentElement.querySelectorAll(":scope > li > details[open]")) {
        if (other !== details) other.open = false;
      }
    }
    select(instance.id, details.open);
  });
  parts.set(card, { planning, tabbed, reload });
  return card;
}

function updateInstance(card, instance, { progress, resources, running, packages, mayChange }) {
  const { planning, tabbed, reload } = parts.get(card);
  const operation = running.get(instance.id);
  const state = instance.isInstantiated ? "INSTANTIATED" : "NOT_INSTANTIATED";
  head(card, instance.name, instance.package, state, instance.isInstantiated && "good");
  const at = progress.get(operation?.id);
  showResources(card.querySelector(".resources"), resources.get(instance.id), at?.steps);
  facts(card.querySelector(".facts"), [
    ["Id", instance.id],
    ["API", instance.api],
    ["Description", instance.description],
    ["VNFD", instance.vnfdId],
    ["Namespace", instance.namespace],
    ["Stack", instance.stack],
    ...instance.aspects.map(({ id, level }) => [`Scale level of ${id}`, String(level)]),
    ...instance.vnfcs.map(({ vduId, resource }) => [vduId, resource]),
  ]);
  planning.update(instance, packages, mayChange);
  keep(card.querySelector(".buttons"), mayChange ? [...actions(instance, planning, tabbed)] : [], {
    key: ([label]) => label,
    make: ([label]) => button(label, () => card.acts.get(label)()),
    update: () => {},
  });
  card.acts = new Map(actions(instance, planning, tabbed));
  if (card.dataset.operation !== (operation?.id ?? "")) {
    card.dataset.operation = operation?.id ?? "";
    if (card.querySelector("details").open) reload();
  }
}

function* actions(instance, planning, tabbed) {
  if (!instance.isInstantiated) {
    yield ["Instantiate", () => askInstantiation(instance)];
    yield ["Delete", () => askRemoval(instance)];
    return;
  }
  const plan = (operation) => () => {
    tabbed.open("Plan");
    planning.choose(operation);
  };
  yield ["Update", plan("MODIFY_INFO")];
  if (instance.api === "v2") yield ["Change package", plan("CHANGE_VNFPKG")];
  yield ["Heal", () => askHeal(instance)];
  if (instance.aspects.length) yield ["Scale", () => askScale(instance)];
  yield ["Terminate", () => askTermination(instance)];
}

const named = ({ name, id }) => `Instance ${name} (${id}).`;

async function askInstantiation(instance) {
  const draft = await send("GET",
    `/view/drafts/${instance.api}/${instance.id}?operation=INSTANTIATE`);
  ask({
    title: `Instantiate ${instance.name}?`,
    text: `What its package ${instance.package} describes is created in the VIM. ${named(instance)}`,
    fields: [{
      name: "body", label: "Request", kind: "json", value: JSON.stringify(draft, null, 2),
    }],
    command: ({ body }) => commands.instantiate(instance, body),
    confirm: "Instantiate",
    act: ({ body }) => send("POST", `${path(instance)}/instantiate`, body),
  });
}

function askHeal(instance) {
  const body = ({ vnfc, cause }) => ({
    ...(vnfc ? { vnfcInstanceId: [vnfc] } : {}),
    ...(cause ? { cause } : {}),
  });
  ask({
    title: `Heal ${instance.name}?`,
    text: `One VNFC is replaced, or everything is brought to what the package says. ${named(instance)}`,
    fields: [
      {
        name: "vnfc",
        label: "What",
        options: [["", "The whole VNF"], ...instance.vnfcs.map(({ id, vduId, resource }) =>
          [id, `${vduId}: ${resource}`])],
      },
      { name: "cause", label: "Cause (optional)" },
    ],
    command: (values) => commands.heal(instance, body(values)),
    confirm: "Heal",
    act: (values) => send("POST", `${path(instance)}/heal`, body(values)),
  });
}

function askScale(instance) {
  const body = ({ type, aspectId, numberOfSteps }) => ({ type, aspectId, numberOfSteps });
  ask({
    title: `Scale ${instance.name}?`,
    text: `VNFCs are added or removed. ${named(instance)}`,
    fields: [
      { name: "type", label: "Direction", options: [["SCALE_OUT", "Out"], ["SCALE_IN", "In"]] },
      {
        name: "aspectId",
        label: "Aspect",
        options: instance.aspects.map(({ id, level }) => [id, `${id}, at level ${level}`]),
      },
      { name: "numberOfSteps", label: "Steps", kind: "number", value: 1 },
    ],
    command: (values) => commands.scale(instance, body(values)),
    confirm: "Scale",
    act: (values) => send("POST", `${path(instance)}/scale`, body(values)),
  });
}

function askTermination(instance) {
  ask({
    title: `Terminate ${instance.name}?`,
    text: `Everything that belongs to it is deleted from the VIM. This cannot be undone. ${named(instance)}`,
    command: () => commands.terminate(instance),
    confirm: "Terminate",
    act: () => send("POST", `${path(instance)}/terminate`, { terminationType: "FORCEFUL" }),
  });
}

function askRemoval(instance) {
  ask({
    title: `Delete ${instance.name}?`,
    text: `Its record is deleted; its operations stay in the history. ${named(instance)}`,
    command: () => commands.remove(instance),
    confirm: "Delete",
    act: () => send("DELETE", path(instance)),
  });
}
