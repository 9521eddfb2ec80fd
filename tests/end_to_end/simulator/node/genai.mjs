// Google's SDK, for AI Studio and for Vertex: by hand, in chats, and with automatic function calling.

import { GoogleGenAI } from "@google/genai";
import { OAuth2Client } from "google-auth-library";
import { DESCRIPTION, EXTRACT, LATER, PARAMETERS, PERSON, QUESTION, baseUrl, refusalOf, tell, weatherStation } from "./flows.mjs";

const authClient = new OAuth2Client();
authClient.setCredentials({ access_token: "token" });
const httpOptions = { baseUrl };
const studio = new GoogleGenAI({ apiKey: "key", httpOptions });
const vertex = new GoogleGenAI({
  vertexai: true,
  project: "p",
  location: "us-central1",
  googleAuthOptions: { authClient },
  httpOptions,
});

const MODELS = { new: "gemini-3.8-flash", old: "gemini-2.5-flash" };
const declaration = { name: "get_weather", description: DESCRIPTION, parametersJsonSchema: PARAMETERS };
const declared = { tools: [{ functionDeclarations: [declaration] }] };

const textOf = (parts) => parts.filter((part) => part.text && !part.thought).map((part) => part.text).join("");
const callsOf = (parts) => parts.filter((part) => part.functionCall).map((part) => part.functionCall);
const answered = (calls, weather) =>
  calls.map(({ id, name, args }) => ({ functionResponse: { id, name, response: { output: weather(args) } } }));

async function partsOf(stream) {
  const parts = [];
  for await (const chunk of stream) parts.push(...(chunk.candidates[0].content?.parts ?? []));
  return parts;
}

async function flow(generate) {
  const { cities, weather } = weatherStation();
  const contents = [{ role: "user", parts: [{ text: QUESTION }] }];
  const first = await generate({ contents, config: declared });
  contents.push({ role: "model", parts: first }, { role: "user", parts: answered(callsOf(first), weather) });
  return { cities, text: textOf(await generate({ contents, config: declared })) };
}

async function chat(client, send) {
  const { cities, weather } = weatherStation();
  const talk = client.chats.create({ model: MODELS.new, config: declared });
  const first = await send(talk, QUESTION);
  const second = textOf(await send(talk, answered(callsOf(first), weather)));
  const third = await send(talk, LATER);
  const text = second + textOf(await send(talk, answered(callsOf(third), weather)));
  return { cities, text };
}

async function automatic(generate) {
  const { cities, weather } = weatherStation();
  const tool = { tool: async () => declared.tools[0], callTool: async (calls) => answered(calls, weather) };
  return { cities, text: textOf(await generate({ contents: QUESTION, config: { tools: [tool] } })) };
}

async function parsed(client) {
  const config = { responseMimeType: "application/json", responseJsonSchema: PERSON };
  return JSON.parse((await client.models.generateContent({ model: MODELS.new, contents: EXTRACT, config })).text);
}

function flowsOf(form, client) {
  const flows = {
    [`${form} chat whole`]: () =>
      chat(client, async (talk, message) => (await talk.sendMessage({ message })).candidates[0].content.parts),
    [`${form} chat streamed`]: () =>
      chat(client, async (talk, message) => partsOf(await talk.sendMessageStream({ message }))),
    [`${form} parsed`]: () => parsed(client),
    [`${form} refused`]: () =>
      refusalOf(() => client.models.generateContent({ model: MODELS.new, contents: "Hi.", config: { temperature: 5 } })),
  };
  for (const [age, model] of Object.entries(MODELS)) {
    const whole = async (asked) => (await client.models.generateContent({ model, ...asked })).candidates[0].content.parts;
    const streamed = async (asked) => partsOf(await client.models.generateContentStream({ model, ...asked }));
    flows[`${form} ${age} whole`] = () => flow(whole);
    flows[`${form} ${age} streamed`] = () => flow(streamed);
    flows[`${form} ${age} automatic whole`] = () => automatic(whole);
    flows[`${form} ${age} automatic streamed`] = () => automatic(streamed);
  }
  return flows;
}

await tell({ ...flowsOf("studio", studio), ...flowsOf("vertex", vertex) });
