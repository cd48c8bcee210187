// Shows what an update or a change of the package would do, before it is done.

import { send } from "./api.js";
import * as commands from "./commands.js";
import { ask } from "./dialog.js";
import { requestForm } from "./form.js";
import { showSteps } from "./steps.js";
import { button, element, say } from "./view.js";

const OPERATIONS = {
  MODIFY_INFO: ["Update", "Replaces configuration that changed, restarts what uses it or has a new image",
    "PATCH", "", commands.modify],
  CHANGE_VNFPKG: ["Change package", "Blue-Green or rolling, with the coordination scripts of the request",
    "POST", "/change_vnfpkg", commands.changePackage],
};

/**
 * Makes the plan of an instance in `target`; begun(): the operation has begun.
 *
 * Returns {choose(operation), update(instance, packages, mayChange)}.
 */
export function planner(target, { api, id }, attempt, begun) {
  const field = (name, label, made) => {
    made.id = `plan-${name}-${id}`;
    return element("div", {}, element("label", { for: made.id }, label), made);
  };
  const names = Object.entries(OPERATIONS).filter(([name]) => api === "v2" || name === "MODIFY_INFO");
  const operation = element("select", {}, ...names.map(([name, [label, effect]]) =>
    element("option", { value: name }, `${label}: ${effect}`)));
  const to = element("select");
  const request = element("div");
  const problem = element("p", { class: "problem", role: "alert" });
  const summary = element("p", { class: "summary", role: "status" });
  const steps = element("ol", { class: "steps" });
  const act = button("Do it", () => confirm());
  act.classList.add("main");
  act.hidden = true;
  target.append(
    element("div", { class: "fields" },
      field("operation", "Operation", operation),
      field("to", "New package", to),
      request),
    element("div", { class: "buttons" }, button("Show the plan", show), act),
    problem, summary, steps);
  let instance = null;
  let form = null;
  let mayChange = false;

  function update(found, packages, may) {
    const isOther = !instance || instance.vnfdId !== found.vnfdId;
    instance = found;
    mayChange = may;
    const others = packages.filter(({ vnfdId, operationalState }) =>
      vnfdId && vnfdId !== found.vnfdId && operationalState === "ENABLED");
    const key = JSON.stringify(others.map(({ vnfdId, name }) => [vnfdId, name]));
    if (to.dataset.shown !== key) {
      const chosen = to.value;
      to.dataset.shown = key;
      const isSame = ({ product }) => product === found.product;
      to.replaceChildren(
        ...group(`Of ${found.product || "this product"}`, others.filter(isSame)),
        ...group("Of another product", others.filter((each) => !isSame(each))));
      if (others.some(({ vnfdId }) => vnfdId === chosen)) to.value = chosen;
    }
    if (isOther) {
      form = null;
      request.replaceChildren();
      clear();
    }
    if (!may) act.hidden = true;
  }

  function clear() {
    act.hidden = true;
    say(problem, "");
    say(summary, "");
    showSteps(steps, [], []);
  }

  async function draft() {
    clear();
    if (!to.value) {
      say(problem, "There is no other package that is enabled: onboard the new one first.");
      return;
    }
    const query = new URLSearchParams({ operation: operation.value, vnfd_id: to.value });
    await guarded(async () => {
      form = requestForm("plan", await send("GET", `/view/drafts/${api}/${id}?${query}`), clear);
      request.replaceChildren(form.element);
    });
  }

  async function show() {
    clear();
    if (!form) await draft();
    if (!form) return;
    await guarded(async () => {
      const body = form.value();
      const plan = await send("POST", `/vnflcm/${api}/vnf_instances/${id}/plan`,
        { operation: operation.value, request: body });
      say(summary, plan.isEmpty ? "Nothing would change." : plan.summary);
      showSteps(steps, plan.steps, plan.remarks, true);
      say(act, `${OPERATIONS[operation.value][0]} now`);
      act.hidden = !mayChange;
    });
  }

  /** Runs a request; what refuses it is shown beside it. */
  async function guarded(action) {
    try {
      await action();
    } catch (error) {
      if (error instanceof SyntaxError) say(problem, `The request is no JSON: ${error.message}`);
      else if (error.status === undefined || error.status === 401) await attempt(() => { throw error; });
      else say(problem, error.message);
    }
  }

  function confirm() {
    const body = form.value();
    const [label, effect, method, below, command] = OPERATIONS[operation.value];
    ask({
      title: `${label}: ${instance.name}?`,
      text: `${effect}. ${summary.textContent} Instance ${instance.name} (${id}).`,
      command: () => command(instance, body),
      confirm: label,
      act: () => send(method, `/vnflcm/${api}/vnf_instances/${id}${below}`, body),
      then: () => {
        clear();
        begun();
      },
    });
  }

  for (const each of [operation, to]) each.addEventListener("change", draft);
  clear();
  return {
    choose: (name) => {
      operation.value = name;
      draft();
      operation.focus();
    },
    update,
  };
}

/** Packages to choose from, under a title; nothing where there are none. */
const group = (label, packages) => (packages.length ? [element("optgroup", { label },
  ...packages.map(({ vnfdId, name }) =>
    element("option", { value: vnfdId }, `${name} (${vnfdId})`)))] : []);
