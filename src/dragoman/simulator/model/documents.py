"""The documents the simulator searches: short, harmless, and its own."""

from msgspec import Struct


class Document(Struct, frozen=True):
    """A page that exists only here."""

    url: str
    title: str
    text: str


DOCUMENTS = (
    Document(
        "https://example.org/about-this-search",
        "About this search",
        "The simulator searches a small set of documents of its own. None of them was fetched from the internet. "
        "Their addresses lead nowhere, because example.org is reserved for examples.",
    ),
    Document(
        "https://example.org/animals/honey-bees",
        "Honey bees",
        "A honey bee visits between fifty and one hundred flowers on one trip. Bees tell each other where flowers "
        "are by dancing. The waggle dance shows the direction of the food against the sun. A colony in summer has "
        "tens of thousands of workers and one queen.",
    ),
    Document(
        "https://example.org/animals/octopuses",
        "Octopuses",
        "An octopus has three hearts and eight arms. Its blood is blue because it carries oxygen with copper "
        "instead of iron. Most of its neurons are in its arms. Octopuses can change colour within a second.",
    ),
    Document(
        "https://example.org/cities/paris",
        "Paris",
        "Paris is the capital of France and lies on the river Seine. The Eiffel Tower was finished in 1889 for "
        "the world's fair. The Louvre is the most visited museum in the world. Paris is divided into twenty "
        "arrondissements.",
    ),
    Document(
        "https://example.org/cities/tokyo",
        "Tokyo",
        "Tokyo is the capital of Japan. The city was called Edo until 1868. Greater Tokyo is one of the largest "
        "urban areas in the world. Its railway stations are among the busiest anywhere.",
    ),
    Document(
        "https://example.org/computing/http",
        "HTTP",
        "HTTP is the protocol of the World Wide Web. Tim Berners-Lee proposed the Web at CERN in 1989. A client "
        "sends a request with a method and a target, and a server answers with a status code. The status 404 "
        "means that nothing was found.",
    ),
    Document(
        "https://example.org/computing/json",
        "JSON",
        "JSON is a text format for data. It has objects, arrays, strings, numbers, booleans and null. JSON was "
        "derived from JavaScript, but nearly every programming language reads and writes it. Its standard is RFC "
        "8259.",
    ),
    Document(
        "https://example.org/computing/python",
        "Python",
        "Python is a programming language. Guido van Rossum published its first version in 1991. It is named "
        "after the comedy group Monty Python. Blocks of Python code are told by indentation.",
    ),
    Document(
        "https://example.org/crafts/bread",
        "Sourdough bread",
        "Sourdough bread rises by wild yeast and lactic acid bacteria. A starter is a mixture of flour and water "
        "in which they live. Bakers feed a starter every day. Salt slows the yeast and strengthens the dough.",
    ),
    Document(
        "https://example.org/crafts/glass",
        "Glass",
        "Glass is made by melting sand with soda and lime. Soda lowers the temperature at which sand melts. Float "
        "glass is made by pouring molten glass on a bath of molten tin. Glass can be recycled without losing "
        "quality.",
    ),
    Document(
        "https://example.org/drinks/coffee",
        "Coffee",
        "Coffee comes from the seeds of a plant that first grew in Ethiopia. The two main species are arabica and "
        "robusta. Robusta has about twice as much caffeine as arabica. Espresso is brewed with hot water under "
        "pressure.",
    ),
    Document(
        "https://example.org/drinks/tea",
        "Tea",
        "Green tea and black tea come from the same plant. Black tea is oxidised before it is dried, and green "
        "tea is not. Tea is, after water, the most widely drunk beverage in the world.",
    ),
    Document(
        "https://example.org/earth/mount-everest",
        "Mount Everest",
        "Mount Everest is the highest mountain above sea level. Its height is 8,849 metres. Edmund Hillary and "
        "Tenzing Norgay reached its summit first, in 1953. It stands on the border between Nepal and China.",
    ),
    Document(
        "https://example.org/earth/tides",
        "Tides",
        "Tides are caused by the gravity of the Moon and the Sun. Most coasts have two high tides a day. Spring "
        "tides come at new moon and full moon, when the Sun and the Moon pull along one line. The highest tides "
        "are in the Bay of Fundy.",
    ),
    Document(
        "https://example.org/earth/volcanoes",
        "Volcanoes",
        "A volcano is an opening through which magma reaches the surface. Magma that has reached the surface is "
        "called lava. Most volcanoes stand where plates of the crust meet. Iceland and Hawaii have volcanoes that "
        "erupt often.",
    ),
    Document(
        "https://example.org/games/chess",
        "Chess",
        "Chess is played on a board of sixty-four squares. Each side has sixteen pieces. The queen is the most "
        "powerful piece. A game ends when a king is checkmated, or in a draw.",
    ),
    Document(
        "https://example.org/history/libraries",
        "Libraries",
        "The library of Alexandria was one of the largest of the ancient world. Public libraries lend books "
        "without charge. Many libraries order their books by the Dewey decimal classification.",
    ),
    Document(
        "https://example.org/history/lighthouses",
        "Lighthouses",
        "A lighthouse shows ships where the coast is. The lighthouse of Alexandria was one of the seven wonders "
        "of the ancient world. Augustin Fresnel invented a lens that made lighthouses visible from much farther "
        "away.",
    ),
    Document(
        "https://example.org/light/rainbows",
        "Rainbows",
        "A rainbow appears when sunlight is refracted and reflected in drops of water. It is seen opposite the "
        "sun. Red is on the outer edge of the bow and violet on the inner one. In a second bow the order of "
        "colours is reversed.",
    ),
    Document(
        "https://example.org/plants/photosynthesis",
        "Photosynthesis",
        "Plants make sugar from water and carbon dioxide with the energy of light. This is called photosynthesis. "
        "It takes place in chloroplasts, which are green because of chlorophyll. Photosynthesis sets oxygen free.",
    ),
    Document(
        "https://example.org/space/moon",
        "The Moon",
        "The Moon is about 384,400 kilometres away from Earth. It always shows the same side to Earth. Neil "
        "Armstrong and Buzz Aldrin were the first people on the Moon, in July 1969. The Moon moves away from "
        "Earth by almost four centimetres a year.",
    ),
    Document(
        "https://example.org/sport/euro-2024",
        "UEFA Euro 2024",
        "Spain won the UEFA Euro 2024. Spain beat England by two goals to one in the final in Berlin on 14 July "
        "2024. It was the fourth European championship for Spain. The tournament was held in Germany.",
    ),
    Document(
        "https://example.org/time/leap-years",
        "Leap years",
        "A leap year has 366 days. A year is a leap year if it can be divided by four, but not if it can be "
        "divided by one hundred, unless it can be divided by four hundred. The year 2000 was a leap year, and "
        "1900 was not.",
    ),
    Document(
        "https://example.org/travel/bicycles",
        "Bicycles",
        "The bicycle is the most efficient way to travel by one's own strength. The chain drive and tyres filled "
        "with air made the safety bicycle of the 1880s popular. There are more than one billion bicycles in the "
        "world.",
    ),
)
