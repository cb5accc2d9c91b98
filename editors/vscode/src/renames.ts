/** Which links VS Code changes by itself after a rename, so that mdmem leaves them to it. */

import { minimatch } from "minimatch";

/** What `markdown.updateLinksOnFileMove` says. */
export interface LinkUpdates {
    enabled: string;
    include: readonly string[];
    enableForDirectories: boolean;
}

/** Return whether VS Code changes links to something that is moved. */
export function changesLinks(updates: LinkUpdates, newPath: string, isFolder: boolean): boolean {
    if (updates.enabled !== "always" && updates.enabled !== "prompt") {
        return false;
    }
    return updates.include.some((glob) => minimatch(newPath, glob)) || (isFolder && updates.enableForDirectories);
}

// The destination of `[text](…)`, and of `[label]: …`; never of `[[…]]`.
const DESTINATION = /\]\((?:<[^<>]*|[^\s<>]*)$|^\s{0,3}\[[^[\]]+\]:\s*(?:<[^<>]*|[^\s<>]*)$/;

/** Return whether the destination of a Markdown link begins behind the first part of a line. */
export function isDestination(before: string): boolean {
    return DESTINATION.test(before);
}
