from typing import Literal

from pydantic import BaseModel

from dragoman import Agent


class Report(BaseModel):
    city: str
    sky: Literal["sun", "rain"]


agent = Agent("gpt-5.2", output_type=Report)
print(agent.run_sync("Report the weather in Oslo.").output.sky)
