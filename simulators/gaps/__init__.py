"""Values that are not there: NaN in x says that a value was not measured, or an item not drawn.

Takes a simulator and how its values go missing, gives a simulator whose NaN are data. Imports
given.
"""
