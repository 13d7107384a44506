// Calls to the gateway, with the key of the tab.

const KEY = "paloma.apiKey";

export const apiKey = () => sessionStorage.getItem(KEY) ?? "";
export const keepKey = (key) => sessionStorage.setItem(KEY, key);
export const forgetKey = () => sessionStorage.removeItem(KEY);

/** Calls the gateway; throws an Error with the problem's own sentence, the status and the key that it was about. */
export async function call(method, path, body) {
  const key = apiKey();
  const response = await fetch(path, {
    method,
    headers: { "x-api-key": key, ...(body && { "content-type": "application/json" }) },
    body: body && JSON.stringify(body),
  });
  const answer = await response.json();
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.detail ?? answer.title), { status: response.status, key });
}
