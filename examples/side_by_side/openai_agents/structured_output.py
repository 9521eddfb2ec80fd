from typing import Literal

from pydantic import BaseModel

from agents import Agent, Runner


class Report(BaseModel):
    city: str
    sky: Literal["sun", "rain"]


agent = Agent(name="Weather", model="gpt-5.2", output_type=Report)
print(Runner.run_sync(agent, "Report the weather in Oslo.").final_output.sky)
