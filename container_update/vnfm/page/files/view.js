// Makes elements and keeps them up to date. What is data only ever becomes text.

/** An element: attributes, then children, which are elements or texts. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Gives an element a text, where it has another one. */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Gives an element one of the classes that tell how things are. */
export function tone(target, name) {
  for (const each of ["good", "busy", "bad"]) target.classList.toggle(each, each === name);
}

/**
 * Makes the children of `target` those of `items`: what stays keeps its element, and with it the
 * focus and whether it is open.
 *
 * key(item) names it, make(item) gives a new element, update(element, item) shows how it is now.
 */
export function keep(target, items, { key, make, update, none }) {
  const known = new Map([...target.children].map((child) => [child.dataset.key, child]));
  const wanted = new Set(items.map(key));
  for (const [name, child] of known) if (!wanted.has(name)) child.remove();
  let place = target.firstElementChild;
  for (const item of items) {
    const name = key(item);
    const child = known.get(name) ?? make(item);
    child.dataset.key = name;
    update(child, item);
    if (child === place) place = child.nextElementSibling;
    else target.insertBefore(child, place);
  }
  if (!items.length && none) target.append(element("li", { class: "card none" }, none));
}

/** A card that can be opened, in a list: its summary has a name, a remark and a badge. */
export function foldable() {
  const head = element("div", { class: "head" },
    element("span", { class: "name" }),
    element("span", { class: "remark quiet" }),
    element("span", { class: "badge" }));
  return element("li", { class: "card" },
    element("details", {}, element("summary", {}, head), element("div", { class: "body" })));
}

/** What a card says at its top. */
export function head(card, name, remark, state, how) {
  say(card.querySelector(".name"), name);
  say(card.querySelector(".remark"), remark);
  const badge = card.querySelector(".badge");
  say(badge, state);
  tone(badge, how);
}

/** Names and values, as a definition list; those without a value are left out. */
export function facts(target, pairs) {
  const shown = pairs.filter(([, value]) => value);
  const text = JSON.stringify(shown);
  if (target.dataset.shown === text) return;
  target.dataset.shown = text;
  const entries = shown.flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, value)]);
  target.replaceChildren(element("dl", {}, ...entries));
}

/** Seconds as people say them. */
export function duration(seconds) {
  if (seconds < 10 && !Number.isInteger(seconds)) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** How long ago a moment is, in whole seconds. */
export const age = (text) => duration(Math.max(0, Math.floor((Date.now() - new Date(text)) / 1000)));

/** A moment, with its date. */
export const day = (text) => new Date(text).toLocaleString();

/** A button. */
export function button(label, act) {
  const made = element("button", { type: "button" }, label);
  made.addEventListener("click", act);
  return made;
}

/**
 * Tabs, the first of which is open: {element, open(name)}.
 *
 * panels: {name: element}; opened(name) is called when one is opened.
 */
export function tabs(prefix, panels, opened) {
  const names = Object.keys(panels);
  const id = (kind, name) => `${prefix}-${kind}-${name.toLowerCase()}`;
  const list = element("div", { class: "tabs", role: "tablist" });
  const open = (name) => {
    for (const each of names) {
      const tab = list.children[names.indexOf(each)];
      tab.setAttribute("aria-selected", String(each === name));
      tab.tabIndex = each === name ? 0 : -1;
      panels[each].hidden = each !== name;
    }
    opened(name);
  };
  for (const name of names) {
    const tab = button(name, () => open(name));
    tab.id = id("tab", name);
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", id("panel", name));
    list.append(tab);
    panels[name].id = id("panel", name);
    panels[name].setAttribute("role", "tabpanel");
    panels[name].setAttribute("aria-labelledby", tab.id);
  }
  list.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: names.length - 1 }[event.key];
    if (!move) return;
    const next = list.children[([...list.children].indexOf(event.target) + move) % names.length];
    next.focus();
    next.click();
  });
  open(names[0]);
  return { element: element("div", {}, list, ...Object.values(panels)), open };
}

/** A moment: the time alone where it is today. */
export function moment(text) {
  const when = new Date(text);
  const today = when.toDateString() === new Date().toDateString();
  return today ? when.toLocaleTimeString() : when.toLocaleString();
}
