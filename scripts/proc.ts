/** What `/proc` says of a process; Linux only. */

/** The unit of processor time there, the same on every Linux. */
const TICK_MS = 10;

/** Processor time of the process so far, which other work on the machine does not change. */
export async function processorMs(pid: number): Promise<number> {
  const stat = await Deno.readTextFile(`/proc/${pid}/stat`);
  // After the name in brackets, which may have spaces: user and system time are fields 14 and 15 of proc(5).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** What the process caused to be written to the disk, pages of files whole; 0 where the system does not tell. */
export function writtenBytes(pid: number | "self"): number {
  try {
    return Number(/^write_bytes: (\d+)$/m.exec(Deno.readTextFileSync(`/proc/${pid}/io`))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Resident memory in bytes: now (`VmRSS`), or at its peak (`VmHWM`). */
export async function residentBytes(pid: number, field: "VmRSS" | "VmHWM" = "VmRSS"): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
}
