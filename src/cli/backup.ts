/** `paloma backup` and `paloma restore`: everything of a data folder in one file. */
import type { Command } from "commander";
export function addBackupCommands(_root: Command): void {}
