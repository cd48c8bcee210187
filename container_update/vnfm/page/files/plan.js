// Shows what an update or a change of the package would do, before it is done.

import { send } from "./api.js";
import * as commands from "./commands.js";
import { ask } from "./dialog.js";
import { showSteps } from "./steps.js";
import { button, element, say } from "./view.js";

const OPERATIONS = {
  MODIFY_INFO: ["Update", "Replaces configuration that changed, restarts what uses it or has a new image",
    "PATCH", "", commands.modify],
  CHANGE_VNFPKG: ["Change package", "Blue-Green or rolling, with the coordination scripts of the request",
    "POST", "/change_vnfpkg", commands.changePackage],
};
const TYPES = ["RollingUpdate", "Blue-Green"];

/**
 * Makes the plan of an instance in `target`.
 *
 * Returns {choose(operation), update(instance, packages, mayChange)}.
 */
export function planner(target, { api, id }, attempt) {
  const field = (name, label, made) => {
    made.id = `plan-${name}-${id}`;
    return element("div", {}, element("label", { for: made.id }, label), made);
  };
  const names = Object.entries(OPERATIONS).filter(([name]) => api === "v2" || name === "MODIFY_INFO");
  const operation = element("select", {}, ...names.map(([name, [label, effect]]) =>
    element("option", { value: name }, `${label}: ${effect}`)));
  const to = element("select");
  const type = element("select", {}, ...TYPES.map((name) => element("option", { value: name }, name)));
  const request = element("textarea", { rows: "10", spellcheck: "false" });
  const problem = element("p", { class: "problem", role: "alert" });
  const summary = element("p", { class: "summary", role: "status" });
  const steps = element("ol", { class: "steps" });
  const typeField = field("type", "Kind of change", type);
  const act = button("Do it", () => confirm());
  act.classList.add("main");
  act.hidden = true;
  target.append(
    element("div", { class: "fields" },
      field("operation", "Operation", operation),
      field("to", "New package", to),
      typeField,
      field("request", "Request", request)),
    element("div", { class: "buttons" }, button("Show the plan", show), act),
    problem, summary, steps);
  let instance = null;
  let mayChange = false;

  function update(found, packages, may) {
    const isOther = !instance || instance.vnfdId !== found.vnfdId;
    instance = found;
    mayChange = may;
    const others = packages.filter(({ vnfdId, operationalState }) =>
      vnfdId && vnfdId !== found.vnfdId && operationalState === "ENABLED");
    const isSame = ({ product }) => Number(product === found.product);
    others.sort((one, other) => isSame(other) - isSame(one));
    const key = JSON.stringify(others.map(({ vnfdId, name }) => [vnfdId, name]));
    if (to.dataset.shown !== key) {
      const chosen = to.value;
      to.dataset.shown = key;
      to.replaceChildren(...others.map(({ vnfdId, name }) =>
        element("option", { value: vnfdId }, `${name} (${vnfdId})`)));
      if (others.some(({ vnfdId }) => vnfdId === chosen)) to.value = chosen;
    }
    if (isOther) {
      request.value = "";
      clear();
    }
  }

  function clear() {
    typeField.hidden = operation.value !== "CHANGE_VNFPKG";
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
      const body = await send("GET", `/view/drafts/${api}/${id}?${query}`);
      if (operation.value === "CHANGE_VNFPKG") body.additionalParams.upgrade_type = type.value;
      request.value = JSON.stringify(body, null, 2);
    });
  }

  async function show() {
    clear();
    if (!request.value) await draft();
    await guarded(async () => {
      const body = JSON.parse(request.value);
      const plan = await send("POST", `/vnflcm/${api}/vnf_instances/${id}/plan`,
        { operation: operation.value, request: body });
      say(summary, plan.isEmpty ? "Nothing would change." : plan.summary);
      showSteps(steps, plan.steps, plan.remarks);
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
    const body = JSON.parse(request.value);
    const [label, effect, method, below, command] = OPERATIONS[operation.value];
    ask({
      title: `${label}: ${instance.name}?`,
      text: `${effect}. ${summary.textContent} Instance ${instance.name} (${id}).`,
      command: () => command(instance, body),
      confirm: label,
      act: async () => {
        await send(method, `/vnflcm/${api}/vnf_instances/${id}${below}`, body);
        clear();
      },
    });
  }

  for (const each of [operation, to, type]) each.addEventListener("change", draft);
  request.addEventListener("input", clear);
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
