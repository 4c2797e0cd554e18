// Runs scripts of this folder one after another in one process.
//
//     several.mjs URL EMBEDDER SCRIPT...    where EMBEDDER is what the server calls an embedding model; empty if it has none
for (const script of process.argv.slice(4)) await import(`./${script}`);
