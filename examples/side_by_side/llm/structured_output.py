from typing import Literal

import llm
from pydantic import BaseModel


class Report(BaseModel):
    city: str
    sky: Literal["sun", "rain"]


response = llm.get_model("gpt-5.2").prompt("Report the weather in Oslo.", schema=Report)
print(Report.model_validate_json(response.text()).sky)
