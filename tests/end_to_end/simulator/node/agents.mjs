// OpenAI's Agents SDK, over Chat Completions and over Responses. Tracing is off: it would tell the vendor of each run.

import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, handoff, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { DESCRIPTION, EXTRACT, LATER, QUESTION, baseUrl, refusalOf, tell, weatherStation } from "./flows.mjs";

const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: "sk-test", maxRetries: 0 });
const runner = new Runner({ tracingDisabled: true });
const Person = z.object({ name: z.string(), age: z.number().int() });

function reporter(model, weather, given = {}) {
  const parameters = z.object({ city: z.string() });
  const station = tool({ name: "get_weather", description: DESCRIPTION, parameters, execute: weather });
  return new Agent({ name: "Reporter", instructions: "Use your tools.", tools: [station], model, ...given });
}

async function run(agent, input, stream) {
  const result = await runner.run(agent, input, { stream });
  if (stream) {
    for await (const event of result) event.type;
    await result.completed;
  }
  return result;
}

async function flow(model, stream) {
  const { cities, weather } = weatherStation();
  return { cities, text: (await run(reporter(model, weather), QUESTION, stream)).finalOutput };
}

async function conversation(model, stream) {
  const { cities, weather } = weatherStation();
  const agent = reporter(model, weather);
  const first = await run(agent, QUESTION, stream);
  const second = await run(agent, [...first.history, { role: "user", content: LATER }], stream);
  return { cities, text: first.finalOutput + second.finalOutput };
}

async function handover(model, stream) {
  const { cities, weather } = weatherStation();
  const toolDescriptionOverride = "Hand over questions about the weather to the reporter.";
  const handoffs = [handoff(reporter(model, weather), { toolDescriptionOverride })];
  const desk = Agent.create({ name: "Receptionist", instructions: "Hand over.", model, handoffs });
  return { cities, text: (await run(desk, QUESTION, stream)).finalOutput };
}

function flowsOf(api, model) {
  const flows = {
    [`${api} parsed`]: async () =>
      (await run(new Agent({ name: "Reader", model, outputType: Person }), EXTRACT, false)).finalOutput,
    [`${api} refused`]: () =>
      refusalOf(() => run(new Agent({ name: "Hot", model, modelSettings: { temperature: 3 } }), QUESTION, false)),
  };
  for (const [form, stream] of [["whole", false], ["streamed", true]]) {
    flows[`${api} ${form}`] = () => flow(model, stream);
    flows[`${api} conversation ${form}`] = () => conversation(model, stream);
    flows[`${api} handoff ${form}`] = () => handover(model, stream);
  }
  return flows;
}

await tell({
  ...flowsOf("chat", new OpenAIChatCompletionsModel(client, "gpt-5.2")),
  ...flowsOf("responses", new OpenAIResponsesModel(client, "gpt-5.6-terra")),
});
