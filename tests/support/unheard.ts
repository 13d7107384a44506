/** What an engine of lines asks of its gateway and reports to it, in tests that do not need it. */
export const UNHEARD = {
  openProxy: () => Promise.reject(new Error("there are no proxies here")),
  countUnknown() {},
  countSetAside() {},
};
