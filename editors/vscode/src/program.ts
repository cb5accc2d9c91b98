/** The mdmem to start: which, and what it prints. */

import { execFile } from "node:child_process";
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join, relative } from "node:path";

const NAME = "mdmem";
const MOST_BYTES = 32 * 1024 * 1024;

/** What decides which mdmem is started. */
export interface Place {
    /** The setting; empty when it is not set. */
    setting: string;
    /** The value of PATH. */
    path: string;
    /** The folders of the workspace. */
    folders: readonly string[];
    isTrusted: boolean;
}

/** Return the absolute path of the mdmem to start, or undefined when there is none that may be started. */
export function findProgram(place: Place): string | undefined {
    if (place.setting) {
        return isAbsolute(place.setting) && mayStart(place.setting, place) ? place.setting : undefined;
    }
    // What the workspace has installed for itself comes first; it is not even looked at without trust.
    const own = place.isTrusted ? place.folders.map((folder) => join(folder, ".venv", "bin")) : [];
    const candidates = [...own, ...place.path.split(delimiter)].filter(isAbsolute);
    return candidates.map((folder) => join(folder, NAME)).find((file) => mayStart(file, place));
}

function mayStart(file: string, place: Place): boolean {
    try {
        accessSync(file, constants.X_OK);
        return statSync(file).isFile() && (place.isTrusted || !isInside(file, place.folders));
    } catch {
        return false;
    }
}

/** Whether a file stands, or really is, in one of some folders. */
function isInside(file: string, folders: readonly string[]): boolean {
    const files = [file, realpathSync(file)];
    return folders
        .flatMap((folder) => [folder, realpathSync(folder)])
        .some((folder) => files.some((each) => !leavesFolder(relative(folder, each))));
}

function leavesFolder(path: string): boolean {
    return isAbsolute(path) || path === ".." || path.startsWith("../");
}

/** Run mdmem without a shell, and return the JSON values that it prints; it fails with what mdmem says. */
export function runProgram(program: string, words: readonly string[], signal?: AbortSignal): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
        execFile(program, [...words], { maxBuffer: MOST_BYTES, ...(signal && { signal }) }, (error, out, said) => {
            let values: unknown[] = [];
            try {
                values = out.split("\n").filter(Boolean).map((line) => JSON.parse(line) as unknown);
            } catch {
                return reject(new Error(said.trim() || "mdmem has printed what is no JSON"));
            }
            const told = values.map(readError).find(Boolean);
            // 1 says that there is nothing.
            if (told || (error && error.code !== 1)) {
                return reject(new Error(told ?? (said.trim() || error?.message)));
            }
            return resolve(values);
        });
    });
}

function readError(value: unknown): string | undefined {
    const error = (value as { error?: { message: string; hint?: string } } | null)?.error;
    return error && [error.message, error.hint].filter(Boolean).join(": ");
}
