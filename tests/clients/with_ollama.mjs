// Ollama's SDK for JavaScript, and the AI SDK's provider on top of it.
import { ABOUT, COSTLY_MODES, FIVE, MODES, RESULT, SCHEMA, SUM, SUM_SCHEMA, TOLD, WEATHER, assert, assertSum, cells, embedder, need, url } from './cells.mjs';

const { Ollama } = need('ollama');
const { Output, embed, generateText, jsonSchema, stepCountIs, streamText, tool } = need('ai');
const { createOllama } = need('ai-sdk-ollama');
const { z } = need('zod');

const client = new Ollama({ host: url });
const tools = [{ type: 'function', function: { name: 'get_weather', description: ABOUT, parameters: SCHEMA } }];

/** The message of an answer, and its last part. */
async function answer(stream, text, fields = {}) {
	const messages = typeof text === 'string' ? [{ role: 'user', content: text }] : text;
	const request = { model: 'pebble', messages, options: { temperature: 0, num_predict: 1500 }, ...fields };
	if (!stream) {
		const whole = await client.chat(request);
		return { message: whole.message, last: whole };
	}
	const message = { role: 'assistant', content: '', thinking: '', tool_calls: [] };
	let last;
	for await (const part of await client.chat({ ...request, stream: true })) {
		message.content += part.message.content;
		message.thinking += part.message.thinking ?? '';
		message.tool_calls.push(...(part.message.tool_calls ?? []));
		last = part;
	}
	return { message, last };
}

/** Asks, and sees that an error with this status and such a text comes of it. */
async function refused(ask, status, text) {
	let raised;
	await ask().catch((error) => (raised = error));
	assert.equal(raised?.name, 'ResponseError', `${raised}`);
	assert.equal(raised.status_code, status);
	assert.ok(raised.message.includes(text), raised.message);
}

await cells('ollama, npm', {
	async question() {
		for (const stream of MODES) {
			const { message, last } = await answer(stream, SUM);
			assert.ok(message.content.includes(FIVE) && !message.thinking, JSON.stringify(message));
			assert.ok(last.done && last.done_reason === 'stop' && last.eval_count > 0 && last.total_duration > 0, JSON.stringify(last));
		}
	},
	async tools() {
		for (const stream of COSTLY_MODES) {
			const called = (await answer(stream, WEATHER, { tools })).message;
			assert.equal(called.tool_calls.length, 1);
			assert.deepEqual(called.tool_calls[0].function.arguments, { city: 'Oslo' });
			const turns = [{ role: 'user', content: WEATHER }, called, { role: 'tool', tool_name: 'get_weather', content: RESULT }];
			const told = (await answer(stream, turns, { tools })).message;
			assert.ok(told.content.includes(TOLD), told.content);
		}
	},
	async thinking() {
		for (const stream of COSTLY_MODES) {
			const { message } = await answer(stream, SUM, { think: true });
			assert.ok(message.thinking && message.content.includes(FIVE) && message.content.length < 60, JSON.stringify(message));
		}
	},
	async structured() {
		const { message } = await answer(false, SUM, { format: z.toJSONSchema(SUM_SCHEMA) });
		assertSum(JSON.parse(message.content));
	},
	async error() {
		for (const stream of MODES) {
			await refused(() => answer(stream, SUM, { model: 'other' }), 404, 'there is no model');
			await refused(() => answer(stream, 'one two '.repeat(6000)), 400, 'context');
		}
		await refused(() => client.pull({ model: 'other' }), 501, 'Models window');
		const { models } = await client.list();
		assert.ok(models.some((model) => model.name === 'pebble') && (await client.version()).version);
	},
	...(embedder && {
		async embeddings() {
			const { embeddings } = await client.embed({ model: embedder, input: ['w7 w8', 'w9'] });
			const { embedding } = await client.embeddings({ model: embedder, prompt: 'w9' });
			assert.ok(embeddings.length === 2 && embedding.length > 1);
			assert.ok(embedding.every((number, at) => Math.abs(number - embeddings[1][at]) < 1e-5));
		},
	}),
});

const provider = createOllama({ baseURL: url });
const base = { temperature: 0, maxRetries: 0, maxOutputTokens: 400 };

/** An answer, whole or streamed. An error of a stream is raised, which the SDK would only tell. */
async function generated(stream, options) {
	if (!stream) return generateText(options);
	let failure;
	const result = streamText({ ...options, onError: ({ error }) => (failure = error) });
	await result.consumeStream();
	if (failure) throw failure;
	return { text: await result.text, reasoningText: await result.reasoningText, finishReason: await result.finishReason };
}

await cells('AI SDK, ollama', {
	async question() {
		for (const stream of MODES) {
			const told = await generated(stream, { ...base, model: provider('pebble'), prompt: SUM });
			assert.ok(told.text.includes(FIVE) && told.finishReason === 'stop', JSON.stringify(told));
		}
	},
	async tools() {
		const asked = [];
		const get_weather = tool({
			description: ABOUT,
			inputSchema: jsonSchema(SCHEMA),
			execute: async (given) => asked.push(given) && JSON.parse(RESULT),
		});
		const told = await generateText({ ...base, model: provider('pebble'), prompt: WEATHER, tools: { get_weather }, stopWhen: stepCountIs(3) });
		assert.deepEqual(asked, [{ city: 'Oslo' }]);
		assert.ok(told.text.includes(TOLD), told.text);
	},
	async thinking() {
		for (const stream of COSTLY_MODES) {
			const told = await generated(stream, { ...base, model: provider('pebble', { think: true }), prompt: SUM });
			assert.ok(told.reasoningText && told.text.includes(FIVE), JSON.stringify(told));
		}
	},
	async structured() {
		const output = Output.object({ schema: SUM_SCHEMA });
		assertSum((await generateText({ ...base, model: provider('pebble'), prompt: SUM, output })).output);
	},
	async error() {
		for (const [model, prompt] of [
			['other', SUM],
			['pebble', 'one two '.repeat(6000)],
		]) {
			await assert.rejects(generateText({ ...base, model: provider(model), prompt }), /there is no model|context/);
		}
	},
	...(embedder && {
		async embeddings() {
			const { embedding } = await embed({ model: provider.embedding(embedder), value: 'w9', maxRetries: 0 });
			assert.ok(embedding.length > 1);
		},
	}),
});
