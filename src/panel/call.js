// Calls to the gateway, with the key of the tab.

const KEY = "paloma.apiKey";
/** What is asked with a key ends with it. */
let asking = new AbortController();

export const apiKey = () => sessionStorage.getItem(KEY) ?? "";

export function keepKey(key) {
  endCalls();
  sessionStorage.setItem(KEY, key);
}

export function forgetKey() {
  endCalls();
  sessionStorage.removeItem(KEY);
}

function endCalls() {
  asking.abort();
  asking = new AbortController();
}

/**
 * Calls the gateway; throws an Error with the problem's own sentence and its status, or an AbortError when the key is
 * forgotten or replaced meanwhile.
 */
export async function call(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: { "x-api-key": apiKey(), ...(body && { "content-type": "application/json" }) },
    body: body && JSON.stringify(body),
    signal: asking.signal,
  });
  const answer = await response.json();
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.detail ?? answer.title), { status: response.status });
}
