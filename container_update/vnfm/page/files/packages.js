// Shows VNF packages, onboards them, and creates VNF instances of them.

import { Refused, send, upload } from "./api.js";
import * as commands from "./commands.js";
import { ask } from "./dialog.js";
import { word } from "./operations.js";
import { opener, table } from "./table.js";
import { age, button, element, facts, fill, say, tone } from "./view.js";

const PATH = "/vnfpkgm/v1/vnf_packages";
const TONES = { ONBOARDED: "good", UPLOADING: "busy", PROCESSING: "busy", ERROR: "bad" };

let mayChange = false;

/** The table of packages, made in `target`; returns a function that shows them. */
export function packageTable(target) {
  const made = table("Packages", {
    Package: (cell, { name, vnfdId, id }) => opener(cell, name || vnfdId || id),
    State: (cell, { onboardingState, operationalState, problem }) => fill(
      cell, [onboardingState, operationalState, problem], () => {
        const isOff = onboardingState === "ONBOARDED" && operationalState === "DISABLED";
        const badge = element("span", { class: "badge" }, word(isOff ? operationalState : onboardingState));
        tone(badge, isOff ? "" : TONES[onboardingState]);
        return [badge, element("p", { class: "message problem" }, problem)];
      }),
    VNFD: (cell, { vnfdId }) => say(cell, vnfdId ?? ""),
    Used: (cell, { isUsed }) => say(cell, isUsed ? "yes" : ""),
    Age: (cell, { created }) => say(cell, age(created)),
  }, { key: ({ id }) => id, detail: packageDetail });
  const none = element("p", { class: "card none" }, "There is no VNF package.");
  target.append(made.element, none);
  return (packages, may) => {
    mayChange = may;
    made.show(() => packages);
    none.hidden = packages.length > 0;
  };
}

function packageDetail() {
  const about = element("div", { class: "facts" });
  const buttons = element("div", { class: "buttons" });
  const update = (found) => {
    facts(about, [
      ["Id", found.id],
      ["VNFD version", found.vnfdVersion],
      ["Provider", found.provider],
      ["Operational state", word(found.operationalState ?? "")],
    ]);
    const acts = mayChange ? [...actions(found)] : [];
    fill(buttons, [found.id, acts], () => acts.map(([label, act, kind]) => button(label, act, kind)));
  };
  return { element: element("div", {}, about, buttons), update };
}

function* actions({ id, name, vnfdId, onboardingState, operationalState, isUsed }) {
  const about = `${name || vnfdId || ""} (${id})`;
  const isOnboarded = onboardingState === "ONBOARDED";
  if (isOnboarded && operationalState === "ENABLED") {
    yield ["New instance", () => askNewInstance(name, vnfdId), "main"];
    yield ["Disable", () => askState(id, about, "DISABLED")];
  } else if (isOnboarded) {
    yield ["Enable", () => askState(id, about, "ENABLED")];
  }
  if (operationalState === "DISABLED" && !isUsed) yield ["Delete", () => askRemoval(id, about), "danger"];
}

function askNewInstance(name, vnfdId) {
  ask({
    title: `New instance of ${name}`,
    text: `Records a VNF instance; nothing starts yet. VNFD ${vnfdId}.`,
    fields: [
      { name: "name", label: "Name", value: "" },
      { name: "api", label: "API", options: [["v2", "v2"], ["v1", "v1"]] },
    ],
    command: (values) => commands.create(values.api, vnfdId, values.name),
    confirm: "Create",
    act: (values) => send("POST", `/vnflcm/${values.api}/vnf_instances`,
      { vnfdId, ...(values.name ? { vnfInstanceName: values.name } : {}) }),
    then: ({ id }) => { location.hash = `#/instances/${id}`; },
  });
}

function askState(id, about, operationalState) {
  const isEnabled = operationalState === "ENABLED";
  const label = isEnabled ? "Enable" : "Disable";
  ask({
    title: `${label} the package?`,
    text: `${isEnabled ? "New instances can be created again" : "No new instance can be created; existing ones stay"}. Package ${about}.`,
    command: () => commands.setPackageState(id, operationalState),
    confirm: label,
    act: () => send("PATCH", `${PATH}/${id}`, { operationalState }),
  });
}

function askRemoval(id, about) {
  ask({
    title: "Delete the package?",
    text: `Its content is deleted too; this cannot be undone. Package ${about}.`,
    command: () => commands.removePackage(id),
    confirm: "Delete",
    act: () => send("DELETE", `${PATH}/${id}`),
  });
}

/** Lets packages be dropped anywhere on the page, or chosen in an input; `target` shows where. */
export function acceptFiles(target, input, status, mayChange) {
  const over = (isOver) => (event) => {
    event.preventDefault();
    target.classList.toggle("over", isOver && mayChange());
  };
  document.addEventListener("dragover", over(true));
  document.addEventListener("dragleave", over(false));
  document.addEventListener("drop", (event) => {
    over(false)(event);
    if (mayChange()) onboard([...event.dataTransfer.files], status);
  });
  input.addEventListener("change", async () => {
    await onboard([...input.files], status);
    input.value = "";
  });
}

async function onboard(files, status) {
  const refused = [];
  status.classList.remove("problem");
  for (const [number, file] of files.entries()) {
    say(status, `Uploading ${file.name}, ${number + 1} of ${files.length}`);
    try {
      const { id } = await send("POST", PATH, { userDefinedData: { file: file.name } });
      await upload(`${PATH}/${id}/package_content`, file);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refused.push(`${file.name}: ${error.message}`);
    }
  }
  status.classList.toggle("problem", refused.length > 0);
  say(status, refused.join("; ") || `Uploaded ${files.map(({ name }) => name).join(", ")}`);
}
