"""The item of a paper: what is tried, graded and scored when some of the paper's functions are masked."""

from pydantic import Field

from pytest_super.tasks.paper import files_of
from pytest_super.tasks.task import Task


class PaperItem(Task):
    """A task whose `functions` are masked, and whose `experiments` are those that need one of them."""

    whole: Task = Field(exclude=True, repr=False)
    """The task of the paper, with all its functions and experiments."""

    @property
    def files(self) -> list[str]:
        """The files with masked functions, which are all that is graded."""
        return files_of(self.functions)


def whole_item(paper: Task) -> PaperItem:
    """The item in which all functions are masked."""
    # The paper is checked already.
    item = PaperItem.model_construct(paper.model_fields_set, **vars(paper), whole=paper)
    item._path, item._line = paper._path, paper._line
    return item
