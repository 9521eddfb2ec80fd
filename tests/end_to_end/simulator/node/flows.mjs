// What the flows of all SDKs share: the question, the tool, and how their outcomes are told to the test that runs them.

export const [baseUrl] = process.argv.slice(2);

export const QUESTION = "What is the weather in Paris and in Tokyo?";
export const LATER = "And the weather in Rome?";
export const EXTRACT = "Extract: Ann, 31";
export const DESCRIPTION = "Tell the current weather in a city.";

export const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

export const PERSON = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
  additionalProperties: false,
};

// A tool that remembers for which cities it was called.
export function weatherStation() {
  const cities = [];
  const weather = ({ city }) => {
    cities.push(city);
    return `18 degrees and cloudy in ${city}`;
  };
  return { cities, weather };
}

// What a call that must be refused was refused with.
export async function refusalOf(call) {
  try {
    await call();
  } catch (error) {
    return { class: error.constructor.name, status: error.status, message: error.message };
  }
  throw new Error("nothing was refused");
}

// Run every flow and print what each came to; one that fails does not keep the others from being told.
export async function tell(flows) {
  const told = {};
  for (const [name, flow] of Object.entries(flows)) {
    try {
      told[name] = await flow();
    } catch (error) {
      told[name] = { error: error.stack };
    }
  }
  process.stdout.write(JSON.stringify(told));
}
