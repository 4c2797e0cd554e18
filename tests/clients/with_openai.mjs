// The official SDK of OpenAI for Node: chat completions and responses, whole and through its stream helpers.
import { ABOUT, COSTLY_MODES, FIVE, MODES, RESULT, SCHEMA, SUM, SUM_SCHEMA, TOLD, WEATHER, assert, assertSum, cells, embedder, need, raises, url } from './cells.mjs';

const { default: OpenAI, NotFoundError, BadRequestError } = need('openai');
const { zodResponseFormat, zodTextFormat } = need('openai/helpers/zod');
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'local', maxRetries: 0 });
const base = { model: 'pebble', temperature: 0 };
const ask = (content, more) => ({ ...base, messages: [{ role: 'user', content }], ...more });

await cells('openai (npm), chat', {
	async question() {
		const whole = await client.chat.completions.create(ask(SUM));
		const stream = client.chat.completions.stream(ask(SUM, { stream_options: { include_usage: true } }));
		const streamed = await stream.finalChatCompletion();
		for (const told of [whole, streamed]) {
			assert.ok(told.choices[0].message.content.includes(FIVE));
			assert.equal(told.choices[0].finish_reason, 'stop');
			assert.ok(told.usage.prompt_tokens > 0 && told.usage.completion_tokens > 0);
		}
		assert.equal(whole.choices[0].message.content, streamed.choices[0].message.content);
		assert.equal(await stream.finalContent(), streamed.choices[0].message.content);
	},
	async tools() {
		for (const stream of COSTLY_MODES) {
			const asked = [];
			const getWeather = {
				name: 'get_weather',
				description: ABOUT,
				parameters: SCHEMA,
				parse: JSON.parse,
				function: (given) => asked.push(given) && RESULT,
			};
			const runner = client.chat.completions.runTools(ask(WEATHER, { stream, tools: [{ type: 'function', function: getWeather }] }));
			assert.ok((await runner.finalContent()).includes(TOLD));
			assert.deepEqual(asked, [{ city: 'Oslo' }]);
		}
	},
	async thinking() {
		const whole = await client.chat.completions.create(ask(SUM, { reasoning_effort: 'high' }));
		assert.ok(whole.choices[0].message.reasoning_content);
		let thought = '';
		let text = '';
		for await (const chunk of await client.chat.completions.create(ask(SUM, { reasoning_effort: 'high', stream: true }))) {
			thought += chunk.choices[0]?.delta.reasoning_content ?? '';
			text += chunk.choices[0]?.delta.content ?? '';
		}
		assert.equal(thought, whole.choices[0].message.reasoning_content);
		assert.equal(text, whole.choices[0].message.content);
	},
	async structured() {
		const body = ask(SUM, { response_format: zodResponseFormat(SUM_SCHEMA, 'sum'), reasoning_effort: 'none' });
		for (const stream of COSTLY_MODES) {
			const told = await (stream ? client.chat.completions.stream(body).finalChatCompletion() : client.chat.completions.parse(body));
			assertSum(told.choices[0].message.parsed);
		}
	},
	async error() {
		for (const stream of MODES) {
			const unknown = await raises(NotFoundError, () => client.chat.completions.create(ask(SUM, { model: 'other', stream })));
			assert.deepEqual([unknown.status, unknown.code, unknown.param], [404, 'model_not_found', 'model']);
			const wrong = await raises(BadRequestError, () => client.chat.completions.create(ask(SUM, { temperature: -1, stream })));
			assert.equal(wrong.param, 'temperature');
			const long = await raises(BadRequestError, () => client.chat.completions.create(ask('one two '.repeat(6000), { stream })));
			assert.equal(long.code, 'context_length_exceeded');
		}
	},
});

const input = (text, more) => ({ ...base, input: text, ...more });
const tools = [{ type: 'function', name: 'get_weather', description: ABOUT, parameters: SCHEMA, strict: false }];

await cells('openai (npm), responses', {
	async question() {
		const whole = await client.responses.create(input(SUM));
		const streamed = await client.responses.stream(input(SUM)).finalResponse();
		for (const told of [whole, streamed]) {
			assert.ok(told.output_text.includes(FIVE));
			assert.equal(told.status, 'completed');
			assert.ok(told.usage.input_tokens > 0 && told.usage.output_tokens > 0);
		}
		assert.equal(whole.output_text, streamed.output_text);
		assert.equal((await client.responses.retrieve(whole.id)).output_text, whole.output_text);
	},
	async tools() {
		for (const stream of COSTLY_MODES) {
			const finish = (body) => (stream ? client.responses.stream(body).finalResponse() : client.responses.create(body));
			const called = await finish(input(WEATHER, { tools }));
			const [call] = called.output.filter((item) => item.type === 'function_call');
			assert.deepEqual([call.name, JSON.parse(call.arguments)], ['get_weather', { city: 'Oslo' }]);
			const result = { type: 'function_call_output', call_id: call.call_id, output: RESULT };
			const told = await finish(input([result], { tools, previous_response_id: called.id }));
			assert.ok(told.output_text.includes(TOLD), told.output_text);
		}
	},
	async thinking() {
		const body = input(SUM, { reasoning: { effort: 'high', summary: 'auto' } });
		const whole = await client.responses.create(body);
		const streamed = await client.responses.stream(body).finalResponse();
		for (const told of [whole, streamed]) {
			const [item] = told.output.filter((item) => item.type === 'reasoning');
			assert.ok(item.content[0].text && item.summary[0].text === item.content[0].text);
			assert.ok(told.usage.output_tokens_details.reasoning_tokens > 0);
		}
	},
	async structured() {
		const body = input(SUM, { text: { format: zodTextFormat(SUM_SCHEMA, 'sum') }, reasoning: { effort: 'none' } });
		for (const stream of COSTLY_MODES) {
			const told = await (stream ? client.responses.stream(body).finalResponse() : client.responses.parse(body));
			assertSum(told.output_parsed);
		}
	},
	async error() {
		for (const stream of MODES) {
			await raises(NotFoundError, () => client.responses.create(input(SUM, { model: 'other', stream })));
			const gone = await raises(NotFoundError, () => client.responses.create(input(SUM, { previous_response_id: 'resp_x', stream })));
			assert.equal(gone.param, 'previous_response_id');
			const long = await raises(BadRequestError, () => client.responses.create(input('one two '.repeat(6000), { stream })));
			assert.equal(long.code, 'context_length_exceeded');
		}
	},
});

if (embedder)
	await cells('openai (npm), embeddings', {
		async embeddings() {
			const made = await client.embeddings.create({ model: embedder, input: ['w7 w8', 'w9'] });
			const numbers = await client.embeddings.create({ model: embedder, input: ['w7 w8', 'w9'], encoding_format: 'float' });
			// The SDK asks for base64 unless it is told otherwise.
			assert.deepEqual(
				made.data.map((entry) => Array.from(entry.embedding)),
				numbers.data.map((entry) => entry.embedding),
			);
			assert.ok(made.usage.prompt_tokens > 2 && made.data[0].embedding.length > 1);
			await raises(BadRequestError, () => client.embeddings.create({ model: 'pebble', input: 'a' }));
			await raises(NotFoundError, () => client.embeddings.create({ model: 'other', input: 'a' }));
		},
	});
