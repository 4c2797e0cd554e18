// What the scripts beside this one share: the packages of the folder PONDER_CLIENTS_NODE, and cells told as lines of JSON.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

export const need = createRequire(`${process.env.PONDER_CLIENTS_NODE}/package.json`);
export const url = process.argv[2];
export { assert };

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

/** Runs a client's cells by name, one after another; a failure is told and the others go on. */
export async function cells(client, runs) {
	for (const [cell, run] of Object.entries(runs)) {
		const begun = Date.now();
		let outcome = { ok: true };
		try {
			await run();
		} catch (error) {
			outcome = { ok: false, error: `${error?.name}: ${error?.stack ?? error}`.slice(0, 2000) };
		}
		console.log(JSON.stringify({ client, cell, ...outcome, seconds: (Date.now() - begun) / 1000 }));
	}
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
