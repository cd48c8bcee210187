// Reads the REST API. The token is kept for as long as the tab is open, and nowhere else.

const KEY = "container-update-token";
const MOST_PAGES = 50;
const NEXT = /<(\/[^>]*)>\s*;\s*rel="next"/;

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

/** A request that was answered with a refusal; `status` 0: it was not answered. */
export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function get(path) {
  const headers = { Accept: "application/json" };
  if (token.get()) headers["X-Auth-Token"] = token.get();
  if (path.startsWith("/vnflcm/v2/")) headers.Version = "2.0.0";
  let answer;
  try {
    answer = await fetch(path, { headers, credentials: "omit", cache: "no-store" });
  } catch {
    throw new Refused(0, "The service does not answer; trying again");
  }
  const body = await answer.json().catch(() => null);
  if (!answer.ok) throw new Refused(answer.status, body?.detail ?? answer.statusText);
  return { body, next: NEXT.exec(answer.headers.get("Link") ?? "")?.[1] };
}

/** One resource. */
export async function read(path) {
  return (await get(path)).body;
}

/** All entries of a list, page by page. */
export async function list(path) {
  const entries = [];
  for (let pages = 0; path && pages < MOST_PAGES; pages += 1) {
    const { body, next } = await get(path);
    entries.push(...body);
    path = next;
  }
  return entries;
}
