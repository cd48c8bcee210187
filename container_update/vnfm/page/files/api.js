// Talks to the REST API. The token is kept for as long as the tab is open, and nowhere else.

const KEY = "container-update-token";
const RETRY_MS = 2000;
const LOST = "The connection was lost; trying again";
const UNKNOWN = "This token is not known here, or it has expired. Tokens are in the file tokens of "
  + "the service's state directory; ask the operator of the service.";
const SILENCE_MS = 30000;

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

async function request(method, path, { body, type, signal } = {}) {
  const headers = { Accept: "application/json, text/event-stream" };
  if (token.get()) headers["X-Auth-Token"] = token.get();
  if (path.startsWith("/vnflcm/v2/")) headers.Version = "2.0.0";
  if (body !== undefined) headers["Content-Type"] = type;
  let answer;
  try {
    answer = await fetch(path, {
      method, headers, body, signal, credentials: "omit", cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The service does not answer; trying again");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) throw new Refused(401, token.get() ? UNKNOWN : "");
  const problem = await answer.json().catch(() => null);
  throw new Refused(answer.status, problem?.detail ?? answer.statusText);
}

/** Sends a request; returns the answer's JSON, null where it has none. */
export async function send(method, path, body) {
  const sent = body === undefined ? {} : { body: JSON.stringify(body), type: "application/json" };
  const answer = await request(method, path, sent);
  return answer.json().catch(() => null);
}

/**
 * Makes begin(), for requests of which the last one alone counts: it returns isLatest(), which tells
 * whether nothing else has begun since. Answers may come in another order than the requests went.
 */
export function turns() {
  let last = 0;
  return () => {
    last += 1;
    const mine = last;
    return () => mine === last;
  };
}

/** Uploads a file as the content of a resource. */
export async function upload(path, file) {
  await request("PUT", path, { body: file, type: "application/zip" });
}

/**
 * Reads server-sent events until stop() of the result is called; connects again when they end.
 *
 * heard(name, value) gets each event, failed(error) each Refused; after a 401 it ends.
 */
export function watch(path, heard, failed) {
  const controller = new AbortController();
  const { signal } = controller;
  const run = async () => {
    while (!signal.aborted) {
      try {
        const answer = await request("GET", path, { signal });
        await readEvents(answer.body.getReader(), heard);
      } catch (error) {
        if (signal.aborted) return;
        failed(error instanceof Refused ? error : new Refused(0, LOST));
        if (error.status === 401) return;
      }
      await new Promise((resolve) => { setTimeout(resolve, RETRY_MS); });
    }
  };
  run();
  return { stop: () => controller.abort() };
}

/** Reads events until they end, or until nothing came for longer than the service is ever silent. */
async function readEvents(reader, heard) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const timer = setTimeout(() => reader.cancel(), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) throw new Refused(0, LOST);
    const parts = (text + decoder.decode(value, { stream: true })).split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const found = /^event: (.*)\ndata: (.*)$/.exec(part);
      if (found) heard(found[1], JSON.parse(found[2]));
    }
  }
}
