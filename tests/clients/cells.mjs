// Code shared by the scripts next to this one: the packages of the folder PONDER_CLIENTS_NODE, and cells printed as
// lines of JSON.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

export const need = createRequire(`${process.env.PONDER_CLIENTS_NODE}/package.json`);
export const url = process.argv[2];
/** An embedding model of the server, if it has one. */
export const embedder = process.argv[3];
export { assert };
/**
 * The values of `stream`. Cells that take whole answers run both ways under `--full` and are streamed otherwise:
 * sdks.py and matrix.py cover both.
 */
export const MODES = [false, true];
export const COSTLY_MODES = process.env.PONDER_FULL === undefined ? [true] : MODES;

const { z } = need('zod');

export const SUM = 'What is 2 + 3?';
export const FIVE = '5';
export const WEATHER = 'What is the weather in Oslo?';
export const RESULT = JSON.stringify({ condition: 'sunny', temperature: 12 });
export const TOLD = '12';
export const ABOUT = 'Gives the weather in a city.';
export const SCHEMA = {
	type: 'object',
	properties: { city: { type: 'string', description: 'The city' } },
	required: ['city'],
};

/** The schema of a structured answer, and its check. */
export const SUM_SCHEMA = z.object({ sum: z.number().int(), sure: z.boolean() });
export function assertSum(given) {
	assert.ok(Number.isInteger(given?.sum) && typeof given.sure === 'boolean' && Object.keys(given).length === 2, JSON.stringify(given));
}

/**
 * Runs a client's cells by name, at once, so that their answers are made in one batch; a failure is told and the others
 * go on.
 */
export async function cells(client, runs) {
	const tell = async ([cell, run]) => {
		const begun = Date.now();
		let outcome = { ok: true };
		try {
			await run();
		} catch (error) {
			outcome = { ok: false, error: `${error?.name}: ${error?.stack ?? error}`.slice(0, 2000) };
		}
		console.log(JSON.stringify({ client, cell, ...outcome, seconds: (Date.now() - begun) / 1000 }));
	};
	await Promise.all(Object.entries(runs).map(tell));
}

/** Asks, and sees that exactly this class of error comes of it; the error. */
export async function raises(kind, ask) {
	try {
		await ask();
	} catch (error) {
		assert.equal(error.constructor, kind, `${error.constructor.name}: ${error.message}`);
		return error;
	}
	assert.fail(`${kind.name} was not raised`);
}
