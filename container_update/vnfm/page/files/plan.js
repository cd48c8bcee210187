// Shows what an update or a change of the package would do, before it is done.

import { send, turns } from "./api.js";
import * as commands from "./commands.js";
import { ask, because, WHY } from "./dialog.js";
import { requestForm } from "./form.js";
import { objectTable } from "./objects.js";
import { opener, table } from "./table.js";
import { button, element, say } from "./view.js";

const OPERATIONS = {
  MODIFY_INFO: ["Update", "configuration and images", "PATCH", "", commands.modify],
  CHANGE_VNFPKG: ["Change package", "all of it", "POST", "/change_vnfpkg",
    commands.changePackage],
};

/**
 * Makes the plans of instances of one API in `target`, which are updated by one request, or in a
 * batch if there are several; begun(): the operation, or the batch, has begun.
 *
 * Returns {choose(operation), update(instance, packages, mayChange)}.
 */
export function planner(target, chosen, attempt, begun) {
  const [{ api, id }] = chosen;
  const isBatch = chosen.length > 1;
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
  const steps = objectTable("Plan", false);
  const plans = planTable();
  const look = button(isBatch ? "Show the plans" : "Show the plan", show);
  const act = button("Do it", () => confirm(), "main");
  target.append(
    element("div", { class: "fields" },
      field("operation", "Operation", operation),
      field("to", "New package", to),
      request),
    problem, steps.element, plans.element,
    element("div", { class: "buttons acts" }, act, look, summary));
  let instance = null;
  let form = null;
  let mayChange = false;
  const begin = turns();

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
    if (isOther) forget();
    if (!may) mayAct(false);
  }

  function mayAct(may) {
    act.hidden = !may;
    look.className = may ? "" : "main";
  }

  function clear() {
    begin();
    mayAct(false);
    say(problem, "");
    say(summary, "");
    steps.show();
    plans.show(() => []);
  }

  /** Drops the request: it is one of another package, or of another operation. */
  function forget() {
    form = null;
    request.replaceChildren();
    clear();
  }

  async function draft() {
    forget();
    if (!to.value) {
      say(problem, "No other package is enabled: onboard the new one first.");
      return;
    }
    const query = new URLSearchParams({ operation: operation.value, vnfd_id: to.value });
    await guarded(async (isLatest) => {
      const found = await send("GET", `/view/drafts/${api}/${id}?${query}`);
      if (!isLatest()) return;
      form = requestForm("plan", found, clear);
      request.replaceChildren(form.element);
    });
  }

  async function show() {
    clear();
    if (!form) await draft();
    if (!form) return;
    await guarded(async (isLatest) => {
      const body = form.value();
      const planOf = (each) => send("POST", `/vnflcm/${api}/vnf_instances/${each.id}/plan`,
        { operation: operation.value, request: body });
      if (isBatch) {
        const made = [];
        for (const [number, each] of chosen.entries()) {
          say(summary, `Plan ${number + 1} of ${chosen.length}`);
          made.push(await planRow(each, planOf));
          if (!isLatest()) return;
          plans.show(() => made);
        }
        say(summary, `${chosen.length} plans`);
      } else {
        const plan = await planOf(chosen[0]);
        if (!isLatest()) return;
        say(summary, sentence(plan));
        steps.show(plan);
      }
      say(act, `${OPERATIONS[operation.value][0]} now`);
      mayAct(mayChange);
    });
  }

  /** Runs a request, which asks isLatest() before it shows an answer; shows what refuses it. */
  async function guarded(action) {
    const isLatest = begin();
    try {
      await action(isLatest);
    } catch (error) {
      if (!isLatest()) return;
      if (error instanceof SyntaxError) say(problem, `The request is not JSON: ${error.message}`);
      else if (error.status === undefined || error.status === 401) await attempt(() => { throw error; });
      else say(problem, error.message);
    }
  }

  function confirm() {
    const body = form.value();
    const [label, effect, method, below, command] = OPERATIONS[operation.value];
    const then = () => {
      clear();
      begun();
    };
    if (isBatch) {
      const batch = (sizes) => ({
        operation: operation.value, request: body, vnfInstanceIds: chosen.map((each) => each.id), ...sizes,
      });
      ask({
        title: `${label}: ${chosen.length} instances?`,
        text: `Changes ${effect}. A wave begins when the one before has ended. With more failures than `
          + "the maximum no further instance begins.",
        fields: [
          { name: "waveSize", label: "Instances in a wave", kind: "number", value: 1 },
          { name: "maxFailures", label: "Maximum number of failures", kind: "number", value: 0, min: "0" },
          WHY,
        ],
        command: (sizes) => commands.createBatch(api, batch(sizes)),
        confirm: label,
        act: (sizes) => send("POST", `/vnflcm/${api}/batches`, batch(sizes)),
        then,
      });
      return;
    }
    ask({
      title: `${label}: ${instance.name}?`,
      text: `Changes ${effect}. ${summary.textContent} Instance ${instance.name} (${id}).`,
      fields: [WHY],
      command: () => command(instance, body),
      confirm: label,
      act: (values) => send(method, because(`/vnflcm/${api}/vnf_instances/${id}${below}`, values), body),
      then,
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

const sentence = (plan) => (plan.isEmpty ? "Nothing would change." : plan.summary);

/** The plans of several instances. */
const planTable = () => table("Plans", {
  Instance: (cell, { name }) => opener(cell, name),
  Plan: (cell, { text, refused }) => {
    say(cell, text);
    cell.classList.toggle("problem", refused);
  },
}, { key: ({ id }) => id, detail: planDetail });

function planDetail() {
  const made = objectTable("Plan", false);
  return { element: made.element, update: ({ plan }) => made.show(plan) };
}

/** The plan of one of several instances, or why there is none. */
async function planRow({ id, name }, planOf) {
  try {
    const plan = await planOf({ id });
    return { id, name, plan, text: sentence(plan), refused: false };
  } catch (error) {
    if (!error.status || error.status === 401) throw error;
    return { id, name, text: error.message, refused: true };
  }
}

/** Packages to choose from, under a title; nothing where there are none. */
const group = (label, packages) => (packages.length ? [element("optgroup", { label },
  ...packages.map(({ vnfdId, name }) => {
    const isAlone = packages.filter((each) => each.name === name).length === 1;
    return element("option", { value: vnfdId }, isAlone ? name : `${name} (${vnfdId})`);
  }))] : []);
